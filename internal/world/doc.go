// Package world acts on this machine: sandboxes and processes, checkpoints, copies of a repository, web pages,
// language servers, forges. It decides nothing about permissions; it enforces decisions.
//
// Begin with sandbox, whose doc.go lists its subpackages: nothing else starts processes.
//
//	sandbox   files, processes and their boxes; it and its keepers start all processes
//	ability   what processes of the sandbox can do beyond tool.Process
//	snapshot  checkpoints of a workspace, stored outside of it
//	web       readable web pages, and search engines
//	lsp       language servers
//	forge     GitHub and GitLab: issues, comments, pull requests, checks
//	changed   which files of a workspace changed while something ran
//	worktree  copies of a repository for separate agents, and their merges
package world
