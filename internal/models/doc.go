// Package models holds what the adapters in the folder llm share with the installation, and no embedder needs.
//
// Begin with catalog.
//
//	catalog   the price book: windows, limits and prices of models
//	reaction  what to do after a failure
//	heal      requests again, without the parts that a server has refused
package models
