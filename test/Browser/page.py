#!/usr/bin/env python3
"""Looks at pages in a browser. Usage: page.py TEST PAGE [TEST PAGE]...; the tests are the functions below."""
import statistics
import sys

import browser

DIMMED, BACKGROUND = "#e4e4e4", "#f2f2f2"  # Of viewer.css.


def near_left(driver, cell, program=0):
    """A place of an action that no text or border covers."""
    left, right, y = driver.execute_script(
        """const row = arguments[0], data = ppcc.programs[arguments[1]], at = ppcc.screenOf(arguments[1], row);
        const half = (data.end[row] - data.start[row]) / 2 * scale();
        return [at.x - half, at.x + half, at.y];""", browser.find(driver, cell, program), program)
    return round(left + (right - left) * 0.1) + 3, round(y)


def hover(driver):
    """The tooltip tells what an action is, when it runs, where it stands in the source and what it waited for."""
    warmup = "phase warmup { if r == 0 { F; F; } else { F; } }"
    group = 'pair.pp:15:{}  overlap {{ F; B; }} // <b>&amp; "quotes"</b></script>'
    called = "called at pair.pp:11:12  else { both(); B; }"
    expected = {
        "0F0": ["0F0: forward", "stage 0, microbatch 0, phase warmup", "rank 0, from 0 to 1.5 (1.5)",
                "pair.pp:9:32  " + warmup, "waited for nothing"],
        "1F0": ["1F0: forward", "stage 1, microbatch 0, phase warmup", "rank 1, from 1.75 to 3.25 (1.5)",
                "pair.pp:9:47  " + warmup,
                "waited for 1RECV_F0 on rank 1 until 1.75, that for 0F0 on rank 0 until 1.5"],
        "1F1": ["1F1: forward", "stage 1, microbatch 1", "rank 1, from 3.25 to 6.75 (3.5)", group.format(13), called,
                "waited for 1F0 on rank 1 until 3.25"],
        "1B0": ["1B0: backward", "stage 1, microbatch 0", "rank 1, from 3.25 to 6.75 (3.5)", group.format(16), called,
                "waited for 1F0 on rank 1 until 3.25"],
        "0B1": ["0B1: backward", "stage 0, microbatch 1", "rank 0, from 9 to 11 (2)", "pair.pp:10:20  if r == 0 { B; B; }",
                "waited for 0B0 on rank 0 until 9"],
    }
    for cell, lines in expected.items():
        browser.point(driver, browser.place(driver, cell))
        assert browser.tooltip(driver) == lines, f"{cell}: {browser.tooltip(driver)}"
    browser.point(driver, (700, 700))
    assert browser.tooltip(driver) == [], "a tooltip where nothing is"


def highlights(driver):
    """A click on an action, or the field, leaves a microbatch its colours; the critical path likewise."""
    colors = {cell: browser.color(driver, near_left(driver, cell)) for cell in ["0F0", "0F1", "1B0", "0B1"]}
    assert DIMMED not in colors.values() and colors["0F0"] == colors["0F1"] != colors["1B0"], colors
    browser.point(driver, browser.place(driver, "0F1"), click=True)
    assert driver.find_element("id", "microbatch").get_attribute("value") == "1"
    for cell, dimmed in {"0F1": False, "0B1": False, "0F0": True, "1B0": True}.items():
        assert (browser.color(driver, near_left(driver, cell)) == DIMMED) == dimmed, cell
    browser.point(driver, browser.place(driver, "0F1"), click=True)
    assert browser.color(driver, near_left(driver, "0F0")) == colors["0F0"], "a second click does not take it back"
    driver.find_element("id", "microbatch").send_keys("0")
    browser.settle(driver)
    assert browser.color(driver, near_left(driver, "0F1")) == DIMMED
    driver.find_element("id", "microbatch").send_keys("\ue00c")  # Escape.
    browser.press(driver, "critical")
    path = driver.execute_script("return Array.from(ppcc.programs[0].critical)")
    assert browser.find(driver, "0B1") in path and browser.find(driver, "0F0") in path
    assert browser.color(driver, near_left(driver, "0B1")) == colors["0B1"]
    off = [cell for cell in ["0F1", "1F1", "1B1"] if browser.find(driver, cell) not in path]
    assert off, "all is critical"
    for cell in off:
        assert browser.color(driver, near_left(driver, cell)) == DIMMED, cell


def memory(driver):
    """The curve of each rank, in its own strip."""
    browser.press(driver, "memory")
    x, y = browser.place(driver, "0F1")
    browser.point(driver, (x, y + 40))
    assert browser.tooltip(driver)[0].startswith("rank 0 holds 2 at "), browser.tooltip(driver)
    x, y = browser.place(driver, "1F0")
    browser.point(driver, (x, y + 40))
    assert browser.tooltip(driver)[0].startswith("rank 1 holds 1 at "), browser.tooltip(driver)
    browser.press(driver, "messages")
    x, y = browser.place(driver, "1RECV_F0")
    browser.point(driver, (x, y))
    assert browser.tooltip(driver)[0] == "1RECV_F0: recv of an output", browser.tooltip(driver)


def keys(driver):
    """Zoom with the wheel and keys, move by dragging; all of it undone by Fit."""
    view = lambda: driver.execute_script("return ppcc.view")
    whole = view()
    canvas = driver.find_element("id", "canvas")
    canvas.send_keys("+")
    browser.settle(driver)
    inside = view()
    assert whole["from"] < inside["from"] and inside["to"] < whole["to"]
    canvas.send_keys("\ue008\ue014")  # Shift and the right arrow.
    browser.settle(driver)
    assert view()["from"] > inside["from"]
    driver.execute_script(
        """const at = ppcc.screenOf(0, arguments[0]);
        at.x = Math.round(at.x); // Wheels have whole places.
        window.under = timeOf(at.x - canvas.getBoundingClientRect().left);
        canvas.dispatchEvent(new WheelEvent("wheel", { clientX: at.x, clientY: at.y, deltaY: -400, cancelable: true }));
        window.after = timeOf(at.x - canvas.getBoundingClientRect().left);""", browser.find(driver, "1B0"))
    under, after = driver.execute_script("return [under, after]")
    assert abs(under - after) < 1e-9, "the time under the pointer moved"
    browser.press(driver, "fit")
    assert view() == whole


def walk(driver):
    """The arrow keys go from action to action, which is shown and spoken; Enter chooses its microbatch."""
    canvas = driver.find_element("id", "canvas")
    spoken = lambda: driver.find_element("id", "spoken").get_attribute("textContent")
    assert canvas.get_attribute("role") == "application" and "pair: " in canvas.get_attribute("aria-label")
    left, up, right, down, home, end = "\ue012", "\ue013", "\ue014", "\ue015", "\ue011", "\ue010"
    for key, cell in [(right, "0F0"), (right, "0F1"), (down, "1F0"), (right, "1F1"), (right, "1B0"), (end, "1B1"), (up, "0B0"),
                      (home, "0F0"), (left, "0F0"), (up, "0F0")]:
        canvas.send_keys(key)
        browser.settle(driver)
        assert spoken().startswith(cell + ": ") and browser.tooltip(driver)[0].startswith(cell + ": "), (cell, spoken())
    assert "rank 0, from 0 to 1.5 (1.5)" in spoken(), spoken()
    driver.execute_script("ppcc.move(8, 11, 0)")
    canvas.send_keys(right)
    view = driver.execute_script("return ppcc.view")
    assert 0 < view["from"] <= 1.5 < 3 <= view["to"] + 1e-9, view
    canvas.send_keys("\ue007")
    assert driver.find_element("id", "microbatch").get_attribute("value") == "1"


def access(driver):
    """A screen reader hears what there is and what keys do; all of it can be reached by Tab."""
    read = browser.accessible(driver)
    roles = {(role, name) for role, name, _ in read}
    for role, name in [("toolbar", "What is shown"), ("button", "Fit"), ("button", "Critical path"), ("button", "Messages"),
                       ("button", "Memory"), ("spinbutton", "Microbatch"), ("note", "Legend")]:
        assert (role, name) in roles, (role, name, roles)
    [canvas] = [one for one in read if one[0] == "application"]
    assert canvas[1].startswith("What each rank does when: pair: ") and canvas[2]["focusable"], canvas
    assert [state["pressed"] for role, name, state in read if name == "Memory" and role == "button"] == ["false"]
    assert "image" not in {role for role, _, _ in read}, "swatches are read"
    assert browser.tab_order(driver, 6) == ["fit", "critical", "messages", "memory", "microbatch", "canvas"]
    driver.switch_to.active_element.send_keys("\ue014")  # The right arrow.
    browser.settle(driver)
    spoken = [one for one in browser.accessible(driver) if one[0] == "status"]
    text = driver.find_element("id", "spoken").get_attribute("textContent")
    assert spoken and spoken[0][2]["live"] == "polite" and text.startswith("0F0: forward; stage 0"), (spoken, text)
    driver.find_element("id", "memory").send_keys(" ")
    assert [state["pressed"] for role, name, state in browser.accessible(driver) if name == "Memory" and role == "button"] == ["true"]
    outline = driver.execute_script("return getComputedStyle(document.getElementById('memory')).outlineStyle")
    assert outline != "none", "the focus cannot be seen"


def dark(driver):
    """A dark page has dark ground, light words and the colours of the boxes; a page that turns dark is drawn anew."""
    box, beside = near_left(driver, "0F0"), (700, 700)
    light = browser.color(driver, box), browser.color(driver, beside)
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [{"name": "prefers-color-scheme", "value": "dark"}]})
    browser.settle(driver)
    assert browser.color(driver, box) == light[0] and light[1] == "#ffffff" != browser.color(driver, beside) == "#16181d"
    lightness = driver.execute_script(
        "return ['body', '#tooltip', '#help'].map((name) => getComputedStyle(document.querySelector(name))).map((style) => "
        "[style.color, style.backgroundColor].map((color) => color.match(/[\\d.]+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0)))")
    assert all(color > 400 for color, _ in lightness) and lightness[0][1] < 200 and lightness[1][1] < 200, lightness


def limit(driver):
    """The strip of memory reaches to the limit, which a line shows."""
    browser.press(driver, "memory")
    assert driver.execute_script("return ppcc.programs[0].tracks.map((track) => track.memory.limit)") == [3, 3]
    x, y = browser.place(driver, "0F1")
    browser.point(driver, (x, y + 40))
    assert browser.tooltip(driver)[0].endswith(", of at most 3"), browser.tooltip(driver)
    top = driver.execute_script("return yOf(strips.find((strip) => strip.type === 'memory')) + canvas.getBoundingClientRect().top")
    colors = {browser.color(driver, (x + i, round(top) + dy)) for i in range(10) for dy in range(4)}
    assert any(int(c[1:3], 16) > int(c[5:7], 16) + 60 for c in colors), colors


def labels(driver):
    """All labels stand in one way, in both programs, and chunks have marks."""
    drawn = lambda: driver.execute_script(
        """const seen = [], put = context.fillText.bind(context);
        context.fillText = (text, ...at) => { if (/^[A-Z]\\d*$/.test(text)) seen.push(text); put(text, ...at); };
        draw(); context.fillText = put; return [labels.stacked, seen];""")
    stacked, seen = drawn()
    assert stacked and set(seen) == {"F", "I", "W"}, (stacked, seen)
    driver.execute_script("ppcc.move(0, length / 2, 0)")
    browser.settle(driver)
    stacked, seen = drawn()
    assert not stacked and {"F10", "F0", "I0", "W1"} <= set(seen) and not {"F", "I", "W"} & set(seen), (stacked, seen)
    legend = driver.execute_script("return document.getElementById('legend').textContent")
    assert legend.endswith("chunk 0chunk 1"), legend


def part(driver):
    """One of two ranks, opened at a span of time; what it waited for elsewhere is said so."""
    view = driver.execute_script("return ppcc.view")
    assert (view["from"], view["to"]) == (2, 4), view
    browser.press(driver, "fit")
    browser.point(driver, browser.place(driver, "1F0"))
    lines = browser.tooltip(driver)
    assert lines[0] == "1F0: forward" and lines[2].startswith("rank 1, "), lines
    assert lines[-1] == "waited for 1RECV_F0 on rank 1 until 1.75, that for a rank that is not shown", lines
    assert driver.execute_script("return ppcc.programs[0].ranks") == [1]


def several(driver):
    """Two programs on one axis: what starts at the same time stands at the same place."""
    titles = driver.execute_script("return ppcc.programs.map((data) => data.title)")
    assert [title.split()[0].rstrip(":") for title in titles] == ["one_f_one_b", "pair"], titles
    first, second = browser.place(driver, "0F0", 0), browser.place(driver, "0F0", 1)
    assert first[1] < second[1]
    zero = driver.execute_script("return canvas.getBoundingClientRect().left + xOf(0)")
    for program, length in (0, 1), (1, 1.5):
        start, end = driver.execute_script(
            "const data = ppcc.programs[arguments[0]]; return [data.start[0], data.end[0]]", program)
        assert (start, end) == (0, length)
        x = browser.place(driver, "0F0", program)[0]
        assert abs(x - zero - driver.execute_script("return scale()") * length / 2) <= 1
    browser.point(driver, second)
    assert browser.tooltip(driver)[2] == "rank 0, from 0 to 1.5 (1.5)", browser.tooltip(driver)


def find_node(driver, cell, kind, path):
    """The number of a node such as `L0.mlp` of an action, and the row of the action."""
    row = browser.find(driver, cell)
    node = driver.execute_script(
        """const [row, kind, path] = arguments, data = ppcc.programs[0], { nodes } = data;
        let first = row;
        while (nodes.order[first] === NONE) --first;
        const order = nodes.order[first];
        for (let node = nodes.begin[order]; node < nodes.begin[order + 1]; ++node)
          if (nodes.member[node] === row - first && nodePath(data, row, node) === kind + data.microbatch[row] + "." + path)
            return node;
        return null;""", row, kind, path)
    assert node is not None, f"{cell} has no {kind}.{path}"
    return row, node


def node_place(driver, cell, kind, path):
    at = driver.execute_script("return ppcc.screenOf(0, ...arguments)", *find_node(driver, cell, kind, path))
    return round(at["x"]), round(at["y"])


def nodes(driver):
    """Nodes stand on their lanes, with words and colours of their own; far out there are only actions."""
    expected = {
        ("0F1", "F", "L0.a"): ["0F1.L0.a on comp", "from 3 to 5 (2)", "in 0F1: forward", "stage 0, microbatch 1",
                               "rank 0, from 3 to 11 (8)"],
        ("0B0", "W", "L0.a"): ["0W0.L0.a on comp", "from 9 to 11 (2)", "in 0B0: backward", "stage 0, microbatch 0",
                               "rank 0, from 3 to 11 (8)"],
        ("0B1", "B", "L0.b"): ["0B1.L0.b on comm", "from 11 to 13 (2)", "in 0B1: backward", "stage 0, microbatch 1",
                               "rank 0, from 11 to 19 (8)"],
    }
    for node, lines in expected.items():
        browser.point(driver, node_place(driver, *node))
        assert browser.tooltip(driver)[:5] == lines, f"{node}: {browser.tooltip(driver)}"
    comp, comm = node_place(driver, "0F1", "F", "L0.a"), node_place(driver, "0B0", "B", "L0.b")
    assert comm[1] - comp[1] == 14, "each lane has its line"
    # Beside the text in the middle.
    near = lambda *node: (lambda x, y: (x - 40, y))(*node_place(driver, *node))
    colors = [browser.color(driver, near(*node)) for node in [("0F1", "F", "L0.a"), ("0B0", "B", "L0.a"), ("0B0", "W", "L0.a")]]
    assert len(set(colors)) == 3, colors
    # The computation waits for 0B1.L0.b.
    x, y = node_place(driver, "0B1", "B", "L0.b")
    assert browser.color(driver, (x, y - 14)) == BACKGROUND
    browser.point(driver, (x, y - 14))
    assert browser.tooltip(driver) == [], "a tooltip where no node is"
    browser.point(driver, comp, click=True)
    assert driver.find_element("id", "microbatch").get_attribute("value") == "1"
    assert browser.color(driver, near("0B0", "W", "L0.a")) == DIMMED
    assert browser.color(driver, near("0F1", "F", "L0.a")) == colors[0]


def actions(driver):
    """Where its nodes are too narrow, an action is one box."""
    browser.point(driver, browser.place(driver, "0F40"))
    assert browser.tooltip(driver)[0] == "0F40: forward", browser.tooltip(driver)
    driver.execute_script("ppcc.move(ppcc.programs[0].start[arguments[0]], ppcc.programs[0].end[arguments[0]], 0)",
                          browser.find(driver, "0F40"))
    browser.settle(driver)
    browser.point(driver, node_place(driver, "0F40", "F", "L0.a"))
    assert browser.tooltip(driver)[0] == "0F40.L0.a on comp", browser.tooltip(driver)


def lanes(driver):
    """What runs beside the compute actions has a line for each lane, without any button."""
    top = browser.place(driver, "0F0")[1]
    for cell, name, line in ("0SAVE0", "on d2h", 1), ("0LOAD0", "on h2d", 2):
        x, y = browser.place(driver, cell)
        assert y - top == 21 + 16 * (line - 1), f"{cell} is {y - top} below"
        browser.point(driver, (x, y))
        assert browser.tooltip(driver)[0] == f"{cell}: {name}", browser.tooltip(driver)
        assert browser.color(driver, near_left(driver, cell)) != BACKGROUND
    browser.press(driver, "messages")
    browser.point(driver, browser.place(driver, "0FREE0"))
    assert browser.tooltip(driver)[0] == "0FREE0: on no lane", browser.tooltip(driver)


def means(driver):
    """Boxes below a pixel give it the mean of their colours, so that nothing depends on which of them comes first."""
    forward, backward = driver.execute_script(
        "return ['F', 'B'].map((mnemonic) => ppcc.programs[0].kinds.find((kind) => kind.mnemonic === mnemonic).colors[0])")
    rgb = lambda color: [int(color[i:i + 2], 16) for i in (1, 3, 5)]
    expected = [(f + 2 * b) / 3 for f, b in zip(rgb(forward), rgb(backward))]
    x, y = browser.place(driver, "0F3000")
    seen = [rgb(browser.color(driver, (x + 7 * i, y))) for i in range(-40, 40)]
    worst = max(abs(value - mean) for color in seen for value, mean in zip(color, expected))
    assert worst < 20, f"{worst} from the mean"
    assert driver.execute_script("return scale()") < 0.2, "the boxes are not narrow"


def hostile(driver):
    """Names in a program stay names."""
    name = '</script><script>window.broken = 1</script><img src=x onerror="window.broken = 2">&amp;'
    assert driver.execute_script("return window.broken") is None
    assert driver.execute_script("return document.images.length") == 0
    assert driver.execute_script("return ppcc.programs[0].title").startswith(name)
    assert driver.title.startswith(name)
    browser.point(driver, browser.place(driver, "0F0"))
    lines = browser.tooltip(driver)
    assert lines[1].endswith("phase " + name) and lines[3].startswith(name + ":"), lines
    assert driver.execute_script("return window.broken") is None


def drag(driver):
    """Frames while the mouse drags, at several zooms; prints how long they take."""
    count = driver.execute_script("return ppcc.programs[0].tracks.reduce((sum, track) => sum + track.compute.rows.length, 0)")
    assert count >= 100_000, count
    for share in 1, 0.1, 0.01, 0.001:
        times = driver.execute_async_script(
            """const [share, done] = arguments, span = ppcc.programs[0].length * share, frames = 60, times = [];
            ppcc.move(0, span, 0);
            const box = canvas.getBoundingClientRect(), y = box.top + 100;
            const fire = (type, x) => canvas.dispatchEvent(new PointerEvent(type, { clientX: x, clientY: y, bubbles: true }));
            fire("pointerdown", box.right - 20);
            let last = null, drawn = ppcc.frames, i = 0;
            const step = (now) => {
              if (last !== null) times.push(now - last);
              last = now;
              if (++i > frames) {
                fire("pointerup", 0);
                return done({ times, drawn: ppcc.frames - drawn, from: ppcc.view.from });
              }
              fire("pointermove", box.right - 20 - 10 * i);
              requestAnimationFrame(step);
            };
            requestAnimationFrame(step);""", share)
        median = statistics.median(times["times"])
        print(f"{count} actions, {share:6.1%} of the time: median {median:.1f} ms a frame, "
              f"slowest {max(times['times']):.1f} ms")
        assert times["drawn"] >= 50, f"only {times['drawn']} frames were drawn"
        assert share == 1 or times["from"] > 0, "it did not move"


def main():
    with browser.chromium() as driver:
        for test, path in zip(sys.argv[1::2], sys.argv[2::2], strict=True):
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
            with browser.opened(driver, path):
                print(test, flush=True)
                globals()[test](driver)
            browser.point(driver, (0, 0))  # Where the next page has nothing.


if __name__ == "__main__":
    main()
