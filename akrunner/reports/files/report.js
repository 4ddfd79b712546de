// Draws the plots of the page: from JSON in it, by Vega, in the colours of the page's theme.
"use strict";
(() => {
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map();
  // plot -> the names whose lines its reader has hidden
  const hidden = new Map();
  let plots = JSON.parse(document.getElementById("plots").textContent);
  let weight = 0;

  // {x: [1, 2], y: [3, 4]} -> [{x: 1, y: 3}, {x: 2, y: 4}]; Vega marks the objects that it is given, so they are made anew each time
  const rows = (plot) => {
    const names = Object.keys(plot.columns);
    const made = plot.columns[names[0]].map((_, at) => Object.fromEntries(names.map((name) => [name, plot.columns[name][at]])));
    if (plot.smooths && weight > 0) smooth(made);
    const left = hidden.get(plot.id);
    return left?.size ? made.filter((point) => !left.has(point.name)) : made;
  };

  // the exponential mean of what came before, without the pull of its first value, line by line
  const smooth = (points) => {
    const means = new Map();
    for (const point of points) {
      const mean = means.get(point.line) || {sum: 0, of: 0};
      mean.sum = weight * mean.sum + (1 - weight) * point.y;
      mean.of = weight * mean.of + (1 - weight);
      means.set(point.line, mean);
      point.y = mean.sum / mean.of;
    }
  };

  const theme = () => {
    const css = getComputedStyle(document.documentElement);
    const [ink, soft, line] = ["--ink", "--soft", "--line"].map((name) => css.getPropertyValue(name).trim());
    return {
      background: "transparent",
      font: getComputedStyle(document.body).fontFamily,
      view: {stroke: line},
      axis: {labelColor: ink, titleColor: ink, labelFontSize: 12, titleFontSize: 12, titleFontWeight: "normal", gridColor: line, domainColor: soft, tickColor: soft, labelLimit: 110, titleLimit: 200, labelOverlap: true, labelSeparation: 8},
      range: {
        category: dark.matches
          ? ["#6cb2eb", "#f6a04d", "#6fd08c", "#ff8f87", "#c3a5e0", "#d9cf8f", "#f2a2cf", "#a3adb8",
             "#3fd0d4", "#ffd166", "#9be564", "#e56b6f", "#8f93ff", "#b08968", "#e07be0", "#e6edf3"]
          : ["#1668b0", "#c4601d", "#1a7f37", "#b3261e", "#6f42a8", "#7a6a00", "#b0307a", "#57606a",
             "#007b83", "#96470f", "#4c7a00", "#7d0c2e", "#2f3fbf", "#5a3d1e", "#8a1fa8", "#1f2328"],
      },
    };
  };

  const draw = async (plot) => {
    const holder = document.getElementById(plot.id);
    if (!holder) return;
    try {
      views.get(plot.id)?.finalize();
      const spec = {...plot.spec, config: theme(), data: {...plot.spec.data, values: rows(plot)}};
      const made = await vegaEmbed(holder, spec, {renderer: "svg", actions: false, ast: true, tooltip: {theme: dark.matches ? "dark" : "light"}});
      views.set(plot.id, made);
      holder.dataset.drawn = "yes";
      legend(plot, spec.config.range.category);
    } catch (error) {
      holder.textContent = `This plot could not be drawn: ${error}`;
      holder.classList.add("wrong");
      console.error(error);
    }
  };

  // the buttons above a plot: each has the colour of its lines, and hides them
  const legend = (plot, colours) => {
    const left = hidden.get(plot.id) || new Set();
    hidden.set(plot.id, left);
    [...document.querySelectorAll(`button[data-plot="${plot.id}"]`)].forEach((button, at) => {
      const name = button.dataset.name;
      button.firstElementChild.style.background = colours[at % colours.length];
      button.setAttribute("aria-pressed", !left.has(name));
      button.onclick = () => {
        if (!left.delete(name)) left.add(name);
        button.setAttribute("aria-pressed", !left.has(name));
        renewed(plot);
      };
    });
  };

  const renewed = (plot) => views.get(plot.id)?.view.data("points", rows(plot)).runAsync();

  const drawAll = () => Promise.all(plots.map(draw));

  const listen = () => {
    const knob = document.getElementById("smoothing");
    if (!knob) return;
    knob.value = weight;
    const said = () => { knob.parentElement.querySelector("output").textContent = weight ? weight.toFixed(2) : "none"; };
    said();
    knob.addEventListener("input", () => {
      weight = Number(knob.value);
      said();
      plots.filter((plot) => plot.smooths).forEach(renewed);
    });
  };

  // a page that is served asks for what is new, and keeps what its reader has opened and chosen
  const follow = async () => {
    const main = document.getElementById("body");
    if (main.dataset.state !== "running") return;
    try {
      const answer = await fetch(`${location.pathname}/now`, {cache: "no-store"});
      if (!answer.ok) throw new Error(`the server answered ${answer.status}`);
      const now = await answer.json();
      await renew(main, now);
      document.getElementById("lost")?.remove();
    } catch (error) {
      if (!document.getElementById("lost")) {
        const told = document.createElement("p");
        told.id = "lost";
        told.className = "wrong";
        told.setAttribute("role", "status");
        told.textContent = `What is new could not be asked for (${error.message}): does akrunner runs --serve still run?`;
        document.body.prepend(told);
      }
    }
    setTimeout(follow, 2000);
  };

  const renew = async (main, now) => {
    const open = new Map([...main.querySelectorAll("details[id]")].map((one) => [one.id, one.open]));
    const drawn = new Map([...main.querySelectorAll(".plot[data-drawn]")].map((one) => [one.id, one]));
    const focused = document.activeElement?.id;
    const scrolled = [window.scrollX, window.scrollY];
    const held = document.createElement("template");
    held.innerHTML = now.body;
    const fresh = held.content.querySelector("main");
    for (const one of fresh.querySelectorAll("details[id]")) if (open.has(one.id)) one.open = open.get(one.id);
    const known = new Map(plots.map((plot) => [plot.id, JSON.stringify(plot.spec)]));
    // a plot whose form is the same keeps its place, with other points
    for (const place of fresh.querySelectorAll(".plot")) if (drawn.has(place.id)) place.replaceWith(drawn.get(place.id));
    main.replaceWith(fresh);
    plots = now.plots;
    listen();
    window.scrollTo(...scrolled);
    if (focused) document.getElementById(focused)?.focus();
    const colours = theme().range.category;
    await Promise.all(plots.map((plot) => {
      if (!drawn.has(plot.id) || known.get(plot.id) !== JSON.stringify(plot.spec)) return draw(plot);
      legend(plot, colours);
      return renewed(plot);
    }));
  };

  dark.addEventListener("change", drawAll);
  drawAll().then(() => { document.documentElement.dataset.drawn = "yes"; });
  listen();
  if (location.protocol !== "file:" && document.documentElement.dataset.live) follow();
})();
