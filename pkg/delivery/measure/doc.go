// Package measure looks at what an ANALYSIS asks for: queries to Prometheus, requests to addresses, and restarts of containers.
//
// A look is one value: what was found, or why nothing was. Whether it is good is for package analysis to say. Who is asked is named by whoever
// may write an application, and is believed in nothing: see package outbound.
package measure
