// Package e2e holds the adapters against real servers with a real model. It is a
// module of its own, so that what needs such servers is in nobody's way.
//
// scripts/e2e-local gets the servers and sets the variables that the tests look
// for; without them the tests are skipped. What the model says is of no interest:
// a small one talks nonsense. The wire, the tokenizer, the window and the grammar
// are real.
package e2e
