// Package trials holds inspan against work that people do in a shell: tasks that a scripted
// policy solves through the real tools, checked after the program has exited; mistakes that
// models have the habit of; and policies that are lazy. A failure here is a fault of the
// harness, because no model takes part. In mode yolo all tasks that can run here must pass,
// in auto 95 of 100.
//
// A task is written down in testdata/tasks, in files by class:
//
//	== what it is about
//	needs: programs, without which it is skipped
//	auto: the wall that keeps mode auto from it; without this line auto must pass
//	file NAME: content, before it begins
//	bash: a command
//	keep: a command that is to go on afterwards; the run is allowed that by --keep-jobs
//	call TOOL: arguments as JSON
//	check: a command that must end with 0, after the program has exited
//
// A line that begins with a tab continues the one before it. PORT stands for a number that
// is free.
package trials
