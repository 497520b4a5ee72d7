// Package service runs many agents for many clients over HTTP: tasks, identities, webhooks, the web page, and
// the Managed Agents wire as one more door.
//
// Begin with server/tasks.go: a task is a sequence of stages in the book, and work moves it from one to the
// next.
//
//	server   tasks of many clients, over HTTP, and the web page
//	managed  the Managed Agents wire of that server
package service
