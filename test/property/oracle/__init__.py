"""A slow, plain model of what ppcc promises, without a line of the compiler.

    program.py   heads, rows and costs
    expand.py    a schedule's statements and rules to rows
    check.py     whether rows do the work, in an order that can be run
    run.py       who waits for whom on a transport; whether all ends, and when
    metrics.py   memory, bubbles and the other numbers of reports
"""
