// Package oracle compares the vendors' own SDKs with this module's adapters and
// fakes. It is a module of its own, so that the SDKs are never linked into the
// product. An SDK and the adapter must read the same from a fake's stream, and the
// fake must accept the SDK's requests.
package oracle
