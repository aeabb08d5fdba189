// The widget of `ppcc.explore`: a slider for each control, the figures, and the picture in a frame of its own.

/// A control in words and as an input; `put` gets its value whenever it changes.
function controlOf(control, put) {
  const label = document.createElement("label"), input = document.createElement("input");
  const shown = document.createElement("output");
  label.append(control.name, " ", input, " ", shown);
  input.name = control.name;
  if (control.type === "flag") {
    input.type = "checkbox";
    input.checked = control.value;
    input.addEventListener("change", () => put(input.checked));
  } else if (control.type === "number") {
    Object.assign(input, { type: "range", min: control.min, max: control.max, step: control.step });
    input.value = shown.textContent = control.value;
    input.addEventListener("input", () => put(Number((shown.textContent = input.value))));
  } else {
    input.value = control.value;
    input.addEventListener("change", () => put(input.value));
  }
  return label;
}

function render({ model, el }) {
  const form = document.createElement("form"), figures = document.createElement("p");
  const frame = document.createElement("iframe"), problems = document.createElement("pre");
  el.classList.add("ppcc-explore");
  form.setAttribute("aria-label", "Parameters and costs");
  form.addEventListener("submit", (event) => event.preventDefault());
  figures.setAttribute("role", "status");
  problems.setAttribute("role", "alert");
  frame.title = "Timeline";
  frame.setAttribute("sandbox", "allow-scripts");
  let waiting = null; // While a slider moves, only where it stays for a moment counts.
  let values = { ...model.get("values") };
  const put = (name) => (value) => {
    values = { ...values, [name]: value };
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      model.set("values", values);
      model.save_changes();
    }, 120);
  };
  for (const group of ["param", "cost"]) {
    const box = document.createElement("fieldset"), legend = document.createElement("legend");
    legend.textContent = group === "param" ? "parameters" : "costs";
    box.append(legend);
    for (const control of model.get("controls")) if (control.group === group) box.append(controlOf(control, put(control.name)));
    if (box.children.length > 1) form.append(box);
  }
  const show = () => {
    figures.textContent = model.get("figures");
    problems.textContent = model.get("problems");
    problems.hidden = !problems.textContent;
    if (frame.srcdoc !== model.get("page")) frame.srcdoc = model.get("page");
  };
  for (const name of ["figures", "problems", "page"]) model.on("change:" + name, show);
  show();
  el.append(form, figures, frame, problems);
  return () => clearTimeout(waiting);
}

export default { render };
