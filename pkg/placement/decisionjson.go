package placement

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// A decision over a thousand clusters is some 30 kB of JSON, which is written with every change of the workload and read by all that follow
// it. By reflection either would take longer than to decide.

// encode writes the shares of these clusters as encoding/json does; "" for none.
func (d Decision) encode(names []string) string {
	if len(names) == 0 {
		return ""
	}
	var out strings.Builder
	out.Grow(encodedLength(names))
	var digits [20]byte
	for i, name := range names {
		if i == 0 {
			out.WriteByte('{')
		} else {
			out.WriteByte(',')
		}
		share := d[name]
		writeString(&out, name)
		out.WriteString(`:{"replicas":`)
		out.Write(strconv.AppendInt(digits[:0], int64(share.Replicas), 10))
		if share.Start != 0 {
			out.WriteString(`,"start":`)
			out.Write(strconv.AppendInt(digits[:0], int64(share.Start), 10))
		}
		if share.Copy {
			out.WriteString(`,"copy":true`)
		}
		if share.Revision != "" {
			out.WriteString(`,"revision":`)
			writeString(&out, share.Revision)
		}
		if share.Target != "" {
			out.WriteString(`,"target":`)
			writeString(&out, share.Target)
		}
		out.WriteByte('}')
	}
	out.WriteByte('}')
	return out.String()
}

// encodedLength is enough for most decisions about these clusters.
func encodedLength(names []string) int {
	length := len(`{}`)
	for _, name := range names {
		length += len(name) + len(`"":{"replicas":1000},`)
	}
	return length
}

func writeString(out *strings.Builder, text string) {
	if !plain(text) { // no cluster and no revision has such a name
		quoted, _ := json.Marshal(text) // a string always marshals
		out.Write(quoted)
		return
	}
	out.WriteByte('"')
	out.WriteString(text)
	out.WriteByte('"')
}

// plain reports whether a string stands in JSON as it is.
func plain(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c < ' ', c > '~', c == '"', c == '\\', c == '<', c == '>', c == '&':
			return false
		}
	}
	return true
}

// parseCanonical reads what encode writes; false for anything else, which encoding/json may be able to read. The names share the memory of
// the text.
func parseCanonical(text string) (Decision, bool) {
	out := make(Decision, strings.Count(text, ":{"))
	if !scanCanonical(text, func(name string, share Share) { out[name] = share }) {
		return nil, false
	}
	return out, true
}

// scanCanonical hands on the shares that encode has written; false for anything else.
func scanCanonical(text string, found func(name string, share Share)) bool {
	in := canonical{rest: text}
	if !in.skip("{") {
		return false
	}
	for {
		name, named := in.text()
		share, shared := in.share()
		if !named || !shared {
			return false
		}
		found(name, share)
		if in.rest == "}" {
			return true
		}
		if !in.skip(",") {
			return false
		}
	}
}

// canonical is what scanCanonical has not read yet. Its methods are false if what comes is something else.
type canonical struct{ rest string }

func (in *canonical) skip(token string) (ok bool) {
	in.rest, ok = strings.CutPrefix(in.rest, token)
	return ok
}

// text reads a string that is not empty.
func (in *canonical) text() (text string, ok bool) {
	if !in.skip(`"`) {
		return "", false
	}
	end := strings.IndexByte(in.rest, '"')
	if end <= 0 || !plain(in.rest[:end]) {
		return "", false
	}
	text, in.rest = in.rest[:end], in.rest[end+1:]
	return text, true
}

func (in *canonical) share() (share Share, ok bool) {
	if !in.skip(`:{"replicas":`) {
		return Share{}, false
	}
	if share.Replicas, ok = in.number(); !ok {
		return Share{}, false
	}
	if in.skip(`,"start":`) {
		if share.Start, ok = in.number(); !ok {
			return Share{}, false
		}
	}
	share.Copy = in.skip(`,"copy":true`)
	if in.skip(`,"revision":`) {
		if share.Revision, ok = in.text(); !ok {
			return Share{}, false
		}
	}
	if in.skip(`,"target":`) {
		if share.Target, ok = in.text(); !ok {
			return Share{}, false
		}
	}
	return share, in.skip("}")
}

// number reads one that is not negative.
func (in *canonical) number() (n int32, ok bool) {
	length, value := 0, int64(0)
	for ; length < len(in.rest) && in.rest[length] >= '0' && in.rest[length] <= '9'; length++ {
		if value = value*10 + int64(in.rest[length]-'0'); value > math.MaxInt32 {
			return 0, false
		}
	}
	if length == 0 || length > 1 && in.rest[0] == '0' {
		return 0, false
	}
	in.rest = in.rest[length:]
	return int32(value), true
}
