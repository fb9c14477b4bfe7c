package text

import (
	"regexp"
	"strings"
)

// AskingPath begins the paths by which clusters ask the logical one about pods, with a token that is part of the path.
const AskingPath = "/manifold.dev/pod-webhooks/"

var asking = regexp.MustCompile(regexp.QuoteMeta(AskingPath) + `([^/\s"]*/)[^/?\s"]+`)

// WithoutTokens returns what an API server says without the tokens in it by which its cluster asks about pods: the address of a webhook that cannot
// be reached is part of the error, which goes into events and conditions.
func WithoutTokens(said string) string {
	if !strings.Contains(said, AskingPath) {
		return said
	}
	return asking.ReplaceAllString(said, AskingPath+"${1}...")
}
