package podhooks

import (
	"net/url"
	"strings"
	"time"

	"github.com/manifold-dev/manifold/internal/text"
)

// PathPrefix begins the paths by which clusters ask. What follows is the name of the cluster and its token.
const PathPrefix = text.AskingPath

// URL is where a cluster asks a logical cluster that is at base.
func URL(base, cluster, token string) string {
	return strings.TrimSuffix(base, "/") + PathPrefix + url.PathEscape(cluster) + "/" + url.PathEscape(token)
}

// CutPath returns which cluster says to ask by a path, and with which token; false for a path that is no question.
func CutPath(path string) (cluster, token string, ok bool) {
	rest, ok := strings.CutPrefix(path, PathPrefix)
	if !ok {
		return "", "", false
	}
	cluster, token, ok = strings.Cut(rest, "/")
	return cluster, token, ok && cluster != "" && token != "" && !strings.Contains(token, "/")
}

// CutURL splits a URL that URL has made into what is before the token, and the token.
func CutURL(of string) (before, token string) {
	slash := strings.LastIndexByte(of, '/') + 1
	return of[:slash], of[slash:]
}

// IsPath reports whether a path is for clusters that ask, be it a question or not.
func IsPath(path string) bool { return strings.HasPrefix(path, PathPrefix) }

// Timeout is how long a cluster waits for an answer. Webhooks above have ten seconds each by default.
const Timeout = 20 * time.Second
