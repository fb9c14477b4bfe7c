package placement

import (
	"encoding/json"
	"testing"
)

func FuzzParseDecision(f *testing.F) {
	for _, seed := range []string{"", "{}", "null", `{"east":{"replicas":3}}`, `{"a":{"replicas":-1}}`, `{"\ud800":null}`, `[]`,
		`{"a":{"replicas":1,"start":7,"copy":true},"b":{"replicas":2147483647}}`, `{"a":{"replicas":01}}`,
		`{"a":{"replicas":1,"start":7,"copy":true,"revision":"web-v7","target":"hoge"},"b":{"replicas":2,"revision":"web-v8","target":"<eu>"}}`,
		`{"a":{"replicas":1,"revision":""}}`, `{"a":{"replicas":1,"target":"hoge","revision":"web-v7"}}`, `{"a":{"replicas":1,"revision":7}}`, `{"a":{"replicas":1}} `} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, annotation string) {
		d, err := ParseDecision(annotation)
		if err != nil {
			return
		}
		again, err := ParseDecision(d.String())
		if err != nil || !again.Equal(d) || again.String() != d.String() {
			t.Fatalf("%q reads as %s, then as %s, %v", annotation, d, again, err)
		}
		if data, err := json.Marshal(map[string]Share(d)); len(d) > 0 && (err != nil || d.String() != string(data)) {
			t.Fatalf("%q is written %s, and by encoding/json %s, %v", annotation, d, data, err)
		}
		var slowly map[string]Share
		if quickly, ok := parseCanonical(annotation); ok && (json.Unmarshal([]byte(annotation), &slowly) != nil || !quickly.Equal(slowly)) {
			t.Fatalf("%q reads as %s, and by encoding/json as %s", annotation, quickly, Decision(slowly))
		}
	})
}
