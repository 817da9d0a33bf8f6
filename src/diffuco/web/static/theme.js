// Runs before the first paint, so that a dark page does not flash white.
const wanted = localStorage.getItem("theme");
const isDark = wanted ? wanted === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
document.documentElement.dataset.theme = isDark ? "dark" : "light";
