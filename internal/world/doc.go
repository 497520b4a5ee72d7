// Package world is how things happen on this machine: boxes and processes, checkpoints, copies of a repository, web
// pages, language servers, forges. It decides nothing about permissions; it holds what was decided.
//
// Begin with sandbox: no other package starts processes.
//
//	sandbox   files, boxes, supervision; the only package that starts processes
//	snapshot  checkpoints of a workspace, stored outside of it
//	web       readable web pages, and search engines
//	lsp       language servers
//	forge     GitHub and GitLab: issues, comments, pull requests, checks
//	worktree  copies of a repository for separate agents, and their merges
package world
