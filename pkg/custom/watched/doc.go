// Package watched is the registry of the custom kinds that are defined: it watches the metadata of their objects, and knows which clusters each
// of these concerns. What is decided about an object is for others to know.
package watched
