module github.com/inspan/inspan/test/e2e

go 1.26.0

replace github.com/inspan/inspan => ../..

require github.com/inspan/inspan v0.0.0

require (
	github.com/BurntSushi/toml v1.6.0 // indirect
	github.com/andybalholm/brotli v1.2.3 // indirect
	github.com/google/jsonschema-go v0.4.3 // indirect
	github.com/klauspost/compress v1.20.3 // indirect
)
