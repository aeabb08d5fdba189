"""A headless Chromium, and what the tests of pages ask of it."""
import contextlib
import shutil
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.actions.action_builder import ActionBuilder


@contextlib.contextmanager
def chromium(*flags, width=1400, height=900):
    options = Options()
    options.binary_location = shutil.which("chromium")
    for flag in ["headless=new", "no-sandbox", "disable-dev-shm-usage", "disable-gpu", f"window-size={width},{height}", *flags]:
        options.add_argument("--" + flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    try:
        driver.set_script_timeout(120)
        yield driver
    finally:
        driver.quit()


@contextlib.contextmanager
def opened(driver, path, fetches=False):
    """Opens a file, and at the end demands that the console stayed empty and that nothing was fetched; or an address, which may."""
    driver.get(path if fetches else Path(path).resolve().as_uri())
    settle(driver)
    yield
    log = driver.get_log("browser")
    assert not log, f"the console of {path}: {log}"
    fetched = driver.execute_script("return performance.getEntriesByType('resource').map((entry) => entry.name)")
    assert fetches or not fetched, f"{path} fetched {fetched}"


@contextlib.contextmanager
def page(path, fetches=False):
    with chromium() as driver, opened(driver, path, fetches):
        yield driver


def find(driver, cell, program=0):
    """The row of an action such as `0F3`."""
    row = driver.execute_script(
        """const data = ppcc.programs[arguments[1]];
        for (let row = 0; row < data.kind.length; ++row)
          if (data.stage[row] + data.kinds[data.kind[row]].mnemonic + data.microbatch[row] === arguments[0]) return row;
        return null;""", cell, program)
    assert row is not None, f"no {cell}"
    return row


def place(driver, cell, program=0):
    """The middle of an action on the screen."""
    at = driver.execute_script("return ppcc.screenOf(arguments[1], arguments[0])", find(driver, cell, program), program)
    return round(at["x"]), round(at["y"])


def point(driver, at, click=False):
    """Moves the mouse, and perhaps clicks; then waits for a frame."""
    actions = ActionBuilder(driver)
    actions.pointer_action.move_to_location(*at)
    if click:
        actions.pointer_action.click()
    actions.perform()
    settle(driver)


def settle(driver):
    driver.execute_async_script("requestAnimationFrame(() => requestAnimationFrame(arguments[0]))")


def press(driver, button):
    driver.execute_script("document.getElementById(arguments[0]).click()", button)
    settle(driver)


def tooltip(driver):
    """Its lines; nothing when it does not show."""
    return driver.execute_script(
        """const tooltip = document.getElementById("tooltip");
        return tooltip.hidden ? [] : Array.from(tooltip.children, (line) => line.textContent);""")


def color(driver, at):
    """The colour on the screen, as in `#ffffff`."""
    return driver.execute_script(
        """const box = canvas.getBoundingClientRect();
        const scale = canvas.width / box.width;
        const probe = new OffscreenCanvas(1, 1).getContext("2d", { willReadFrequently: true });
        probe.drawImage(canvas, -Math.round((arguments[0] - box.left) * scale), -Math.round((arguments[1] - box.top) * scale));
        const data = probe.getImageData(0, 0, 1, 1).data;
        return "#" + Array.from(data.slice(0, 3), (value) => value.toString(16).padStart(2, "0")).join("");""", *at)


def accessible(driver):
    """What a screen reader reads: (role, name, description or state) of all that is not left out, in order."""
    driver.execute_cdp_cmd("Accessibility.enable", {})
    nodes = driver.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
    reported = []
    for node in nodes:
        role = node.get("role", {}).get("value")
        if node["ignored"] or role in ("StaticText", "InlineTextBox", "none", "generic"):
            continue
        state = {one["name"]: one["value"].get("value") for one in node.get("properties", [])}
        reported.append((role, node.get("name", {}).get("value", ""), state))
    nameless = [one for one in reported if one[2].get("focusable") and one[0] != "RootWebArea" and not one[1]]
    assert not nameless, f"without a name: {nameless}"
    return reported


def tab_order(driver, count):
    """What has the focus after each press of Tab, by id, name or tag."""
    order = []
    for _ in range(count):
        driver.switch_to.active_element.send_keys("\ue004")
        order.append(driver.execute_script("const at = document.activeElement; return at.id || at.name || at.tagName"))
    return order
