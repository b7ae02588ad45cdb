"""The claims ledger: what was measured at seeds that nobody chose, as one JSON document and one page.

python -m ledger seeds [COMMIT]        the two seeds that follow from the commit's hash
python -m ledger take FOLDER...        keep the claims of larger runs beside the code (ledger/results)
python -m ledger write RUNS [RUNS]     the ledger, from the run folders of two seeds and what was kept
python -m ledger judge RUNS...         a third seed's verdicts beside the ledger's, of one paper or more a folder
"""
