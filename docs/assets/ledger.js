// Shows the rows of the claims ledger that agree with every choice; a choice in the address (#verdict=differs) is taken.
const choices = [...document.querySelectorAll("select[data-filter]")];
const rows = [...document.querySelectorAll("#ledger tbody tr")];

function show() {
  let shown = 0;
  for (const row of rows) {
    const agrees = choices.every((choice) => !choice.value || row.dataset[choice.dataset.filter] === choice.value);
    row.hidden = !agrees;
    shown += agrees;
  }
  document.getElementById("ledger-count").textContent = `${shown} of ${rows.length} claims`;
}

const asked = new URLSearchParams(location.hash.slice(1));
for (const choice of choices) {
  choice.value = asked.get(choice.dataset.filter) ?? "";
  choice.addEventListener("change", show);
}
show();
