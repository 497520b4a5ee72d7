// Package e2e tests the adapters against real servers with a real model. It is a
// module of its own, so that other tests don't need such servers.
//
// scripts/e2e-local installs the servers and sets the variables that the tests need.
// Without them the tests are skipped. The model's answers don't matter: a small model
// talks nonsense. The wire, the tokenizer, the window and the grammar are real.
package e2e
