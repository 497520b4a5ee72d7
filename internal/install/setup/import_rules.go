package setup

import "path/filepath"

// notRead is why rules of editors are not taken over.
const notRead = "inspan doesn't read rules of this kind; import each file in AGENTS.md with a line such as @docs/style.md, or move its text there"

// cursor names the rules of Cursor in a folder.
func (i *Import) cursor() {
	i.folder(Ignored, filepath.Join(i.root, ".cursor", "rules"), ".mdc", "file", notRead)
	if path := filepath.Join(i.root, ".cursorrules"); exists(path) {
		i.ignored(path, "", notRead)
	}
}

// copilot names the instructions of GitHub Copilot in a folder.
func (i *Import) copilot() {
	if path := filepath.Join(i.root, ".github", "copilot-instructions.md"); exists(path) {
		i.ignored(path, "", notRead)
	}
	i.folder(Ignored, filepath.Join(i.root, ".github", "instructions"), ".instructions.md", "file", notRead)
}
