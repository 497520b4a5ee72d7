// Command inspan is an agent for the terminal.
package main

import "github.com/inspan/inspan/internal/front/command"

func main() { command.Program{}.Run() }
