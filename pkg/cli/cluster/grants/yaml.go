package grants

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"sigs.k8s.io/yaml"

	"github.com/manifold-dev/manifold/pkg/clusters/rights"
)

// commentWidth is how wide a comment may be.
const commentWidth = 130

// WriteYAML writes pieces as YAML documents, each with a comment that says what it is for, and so with every rule of a role.
func WriteYAML(out io.Writer, all []Piece) error {
	var text bytes.Buffer
	for _, p := range all {
		text.WriteString("---\n" + comment(p.why))
		object := p.Object.DeepCopy().Object
		if p.rights != nil {
			delete(object, "rules")
		}
		metadata := object["metadata"].(map[string]any)
		delete(metadata, "creationTimestamp")
		body, err := yaml.Marshal(object)
		if err != nil {
			return fmt.Errorf("write %s as YAML: %w", p, err)
		}
		text.Write(body)
		if err := writeRules(&text, p.rights); err != nil {
			return fmt.Errorf("write the rules of %s as YAML: %w", p, err)
		}
	}
	_, err := out.Write(text.Bytes())
	return err
}

func writeRules(out *bytes.Buffer, of []rights.Right) error {
	if len(of) == 0 {
		return nil
	}
	out.WriteString("rules:\n")
	for i, rule := range policyRules(of) {
		body, err := yaml.Marshal([]any{rule})
		if err != nil {
			return err
		}
		out.WriteString(comment(of[i].Why))
		out.Write(body)
	}
	return nil
}

// comment writes a text as lines of a comment, which are broken between words.
func comment(text string) string {
	var out strings.Builder
	line := "#"
	for _, word := range strings.Fields(text) {
		if len(line)+1+len(word) > commentWidth {
			out.WriteString(line + "\n")
			line = "#"
		}
		line += " " + word
	}
	return out.String() + line + "\n"
}
