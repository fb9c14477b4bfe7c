// Package imageref takes images apart that containers name.
package imageref

import "strings"

// Reference is an image as a container names it. Nothing is completed, and a part that is not named is empty.
type Reference struct{ Name, Tag, Digest string }

// Parse takes an image apart. A colon belongs to the tag unless a slash follows, as it does behind the port of a registry. The name is what the image
// begins with.
func Parse(image string) (out Reference) {
	out.Name, out.Digest, _ = strings.Cut(image, "@")
	if i := strings.LastIndex(out.Name, ":"); i > strings.LastIndex(out.Name, "/") {
		out.Name, out.Tag = out.Name[:i], out.Name[i+1:]
	}
	return out
}
