module github.com/inspan/inspan/engine/temporal

go 1.26.0

replace (
	github.com/inspan/inspan => ../..
	github.com/inspan/inspan/engine/postgres => ../postgres
)

require (
	github.com/inspan/inspan v0.0.0
	github.com/inspan/inspan/engine/postgres v0.0.0
)

require go.temporal.io/sdk v1.50.0 // indirect
