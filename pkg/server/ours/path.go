package ours

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/validate/content"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// mostEncoded is how many times over a path may be percent-encoded: once more than apps that carry encoded names in paths need.
	mostEncoded = 3
	// mostQuoted is how much of a path an error quotes, in bytes.
	mostQuoted = 256
)

// ProxyPath returns where a cluster serves what lies at a path behind an object: below /api/v1/namespaces/NAMESPACE/RESOURCE/ID/proxy,
// whoever looks at it on the way. The path comes as it was decoded. It is passed on as it is or not at all: to clean it would be to guess
// what the next one makes of it. The error tells a person which path that is.
func ProxyPath(namespace, resource, id, sub string) (string, error) {
	if err := checkID(namespace, resource, id); err != nil {
		return "", err
	}
	if climbs(sub) {
		return "", fmt.Errorf("path %s of the request to the proxy of %s %q has segments that lead out of it, or is encoded too often; "+
			"send a path without segments . and .. in it", quoted(sub), resource, id)
	}
	below := fmt.Sprintf("/api/v1/namespaces/%s/%s/%s/proxy", namespace, resource, id)
	if sub == "" {
		return below, nil
	}
	out := below + "/" + strings.TrimPrefix(sub, "/")
	if clean := path.Clean(out); clean != below && !strings.HasPrefix(clean, below+"/") {
		return "", fmt.Errorf("path %s leads out of the proxy of %s %q", quoted(sub), resource, id)
	}
	return out, nil
}

// checkID makes sure that each part of the path before the proxy is one segment, which nobody takes for anything else.
func checkID(namespace, resource, id string) error {
	_, name, port, valid := utilnet.SplitSchemeNamePort(id)
	if !valid {
		return fmt.Errorf("%s is not [SCHEME:]NAME[:PORT] of %s", quoted(id), resource)
	}
	for what, segment := range map[string]string{"namespace": namespace, "resource": resource, "name": name} {
		if problems := content.IsPathSegmentName(segment); len(problems) > 0 || len(validation.IsDNS1123Subdomain(segment)) > 0 {
			return fmt.Errorf("%s is not the name of a %s", quoted(segment), what)
		}
	}
	if port != "" && len(validation.IsDNS1123Label(port)) > 0 { // as numbers are, too
		return fmt.Errorf("%s is neither the number nor the name of a port of %s", quoted(port), resource)
	}
	return nil
}

// climbs reports whether anybody on the way might take a path for one that leads up: as it is, or decoded once more, with a backslash for a
// slash, without parameters, or up to where a careless reader stops.
func climbs(sub string) bool {
	for range mostEncoded {
		for segment := range strings.FieldsFuncSeq(sub, func(r rune) bool { return r == '/' || r == '\\' }) {
			if i := strings.IndexFunc(segment, endsSegment); i >= 0 {
				segment = segment[:i]
			}
			if segment = strings.TrimSpace(segment); segment == "." || segment == ".." {
				return true
			}
		}
		decoded := decode(sub)
		if decoded == sub {
			return false
		}
		sub = decoded
	}
	return true
}

// endsSegment reports whether a character may end what a server looks at in a segment: it begins parameters, a query or a fragment, or it ends
// text in programs that were written in C.
func endsSegment(r rune) bool { return r == ';' || r == '?' || r == '#' || r < ' ' || r == 0x7f }

// decode decodes what is percent-encoded and leaves what only looks like that, as lenient servers do.
func decode(s string) string {
	if !strings.Contains(s, "%") {
		return s
	}
	var out strings.Builder
	for i := 0; i < len(s); i++ {
		if s[i] == '%' && i+2 < len(s) {
			if value, err := strconv.ParseUint(s[i+1:i+3], 16, 8); err == nil {
				out.WriteByte(byte(value))
				i += 2
				continue
			}
		}
		out.WriteByte(s[i])
	}
	return out.String()
}

// quoted is a text as an error shows it, however long it is and whatever is in it.
func quoted(s string) string {
	if len(s) > mostQuoted {
		return strconv.QuoteToASCII(s[:mostQuoted]) + "..."
	}
	return strconv.QuoteToASCII(s)
}
