package places

// Content is what is known about the content of a file.
type Content string

// Contents.
const (
	ContentUnknown Content = ""       // it can't be told: it is not a regular file, too big, or can't be read
	ContentNone    Content = "none"   // there is no such file
	ContentPlain   Content = "plain"  // there is no secret in it
	ContentSecret  Content = "secret" // there may be one
	ContentOwn     Content = "own"    // the session has made it
)

// Looker is an optional interface of tool.Files that tells whether a file with the name of a secret holds one.
type Looker interface {
	// Look returns what is at a resolved path. It follows no link and never blocks.
	Look(path string) Content
}
