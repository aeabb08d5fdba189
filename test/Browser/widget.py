#!/usr/bin/env python3
"""Drives the widget of `ppcc.explore` without a notebook. Usage: widget.py PACKAGE PICTURE PAGE; writes PAGE."""
import json
import sys
import time
from pathlib import Path

import browser
from selenium.webdriver.common.keys import Keys

package, picture, page = Path(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
controls = [{"group": "param", "name": "P", "value": 2, "type": "number", "min": 1, "max": 8, "step": 1},
            {"group": "param", "name": "forward_only", "value": False, "type": "flag"},
            {"group": "param", "name": "word", "value": "a", "type": "text"},
            {"group": "cost", "name": "F", "value": 1, "type": "number", "min": 0, "max": 4, "step": 0.25}]
state = {"controls": controls, "values": {c["name"]: c["value"] for c in controls}, "figures": "makespan 15", "problems": "",
         "page": picture.read_text()}
inside = lambda value: json.dumps(value).replace("<", "\\u003c")
page.write_text(f"""<!doctype html><meta charset="utf-8"><style>{(package / "_explore.css").read_text()}</style><div id="cell"></div><script>
const state = {inside(state)}, listeners = {{}};
window.saved = [];
const model = {{ get: (name) => state[name], set: (name, value) => (state[name] = value),
  save_changes: () => saved.push(structuredClone(state.values)), on: (name, call) => (listeners[name] = call) }};
window.answer = (name, value) => {{ state[name] = value; listeners["change:" + name](); }};
import(URL.createObjectURL(new Blob([{inside((package / "_explore.js").read_text())}], {{ type: "text/javascript" }})))
  .then((module) => {{ module.default.render({{ model, el: document.getElementById("cell") }}); window.ready = true; }});
</script>""")


def wait(driver, script):
    """Until it gives something true, which comes back."""
    end = time.time() + 20
    while not (value := driver.execute_script("return " + script)):
        assert time.time() < end, script
        time.sleep(0.02)
    return value


with browser.page(page.resolve().as_uri(), fetches=True) as driver:
    wait(driver, "window.ready")
    find = lambda css: driver.find_element("css selector", css)
    assert find("p").text == "makespan 15" and not find("pre").is_displayed()
    assert [legend.text for legend in driver.find_elements("css selector", "legend")] == ["parameters", "costs"]
    assert find("iframe").get_attribute("sandbox") == "allow-scripts"
    driver.switch_to.frame(find("iframe"))
    assert wait(driver, "window.ppcc && ppcc.programs[0].title").startswith("one_f_one_b P=2 M=4")
    driver.switch_to.default_content()
    print("it shows what the kernel says")
    find("input[name=P]").send_keys(Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    assert find("label:first-of-type output").text == "4"
    assert wait(driver, "saved.length && saved") == [{"P": 4, "forward_only": False, "word": "a", "F": 1}], "one message for two steps"
    find("input[name=forward_only]").click()
    find("input[name=word]").send_keys("b\t")
    find("input[name=F]").send_keys(Keys.ARROW_LEFT)
    wait(driver, "saved.at(-1).F === 0.75")
    assert driver.execute_script("return saved.at(-1)") == {"P": 4, "forward_only": True, "word": "ab", "F": 0.75}
    print("sliders, boxes and fields reach the kernel")
    driver.execute_script("answer('figures', 'makespan 9'); answer('page', '<p id=other>another</p>')")
    assert find("p").text == "makespan 9"
    driver.switch_to.frame(find("iframe"))
    wait(driver, "document.getElementById('other')")
    driver.switch_to.default_content()
    print("what comes back is drawn")
    driver.execute_script("answer('problems', 'P must be even')")
    assert find("pre").text == "P must be even" and "another" in find("iframe").get_attribute("srcdoc")
    print("problems stand below the last good picture")
