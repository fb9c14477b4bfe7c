package changes

import (
	"path"
	"slices"
	"strings"
)

// MatchesAny reports whether a path matches one of several patterns.
func MatchesAny(patterns []string, name string) bool {
	return slices.ContainsFunc(patterns, func(pattern string) bool { return Matches(pattern, name) })
}

// Matches reports whether a path matches a pattern. Beside what path.Match knows, "**" stands for any number of folders, and a pattern of a folder
// matches all that is in it.
func Matches(pattern, name string) bool {
	return match(strings.Split(path.Clean(pattern), "/"), strings.Split(path.Clean(name), "/"))
}

// match goes through the pattern with the set of the places in the path that it may have reached, so that many "**" take no longer than few.
func match(pattern, name []string) bool {
	reached := make([]bool, len(name)+1)
	reached[0] = true
	for _, part := range pattern {
		next, from := make([]bool, len(name)+1), false
		for i, here := range reached {
			from = from || here
			switch {
			case part == "**":
				next[i] = from
			case here && i < len(name):
				if ok, err := path.Match(part, name[i]); ok && err == nil {
					next[i+1] = true
				}
			}
		}
		reached = next
	}
	for i, here := range reached {
		// What is below of what the pattern names is a part of it.
		if here && i > 0 {
			return true
		}
	}
	return reached[len(name)]
}
