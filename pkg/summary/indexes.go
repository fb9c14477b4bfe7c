package summary

import (
	"strconv"
	"strings"
)

// indexRange is a range of indexes of a Job, with its last.
type indexRange struct{ first, last int32 }

// parseIndexes reads indexes of a Job as its controller writes them, "1,3-5,7": ascending, apart from each other, and below completions.
func parseIndexes(text string, completions int32) (out []indexRange, ok bool) {
	if text == "" {
		return nil, true
	}
	next := int32(0)
	for text != "" {
		var part string
		part, text, ok = strings.Cut(text, ",")
		if ok && text == "" {
			return nil, false
		}
		first, last, isRange := strings.Cut(part, "-")
		r := indexRange{}
		if r.first, ok = parseIndex(first); !ok {
			return nil, false
		}
		r.last = r.first
		if isRange {
			if r.last, ok = parseIndex(last); !ok || r.last <= r.first {
				return nil, false
			}
		}
		if r.first < next || r.last >= completions {
			return nil, false
		}
		next = r.last + 1
		out = append(out, r)
	}
	return out, true
}

// parseIndex reads a number as it is printed.
func parseIndex(text string) (int32, bool) {
	n, err := strconv.ParseInt(text, 10, 32)
	return int32(n), err == nil && n >= 0 && strconv.FormatInt(n, 10) == text
}

// overlap reports whether two lists of indexes have one in common.
func overlap(a, b []indexRange) bool {
	for len(a) > 0 && len(b) > 0 {
		switch {
		case a[0].last < b[0].first:
			a = a[1:]
		case b[0].last < a[0].first:
			b = b[1:]
		default:
			return true
		}
	}
	return false
}
