"""How the evaluator decides: edges, dispatch, reports, fan-outs, failure, resume."""
