package framework

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
)

// AuditEvent is what tests read of an audit log.
type AuditEvent struct {
	AuditID     string
	Verb        string
	Stage       string
	ObjectRef   struct{ Resource, Subresource, Namespace, Name string }
	User        struct{ Username string }
	Annotations map[string]string
}

// AwaitAudited waits until the audit log tells of a finished request in the scenario's namespace, and returns what it tells.
func AwaitAudited(s *Scenario, is func(AuditEvent) bool) AuditEvent {
	s.Helper()
	var found AuditEvent
	s.Logical.Poll("the request is in the audit log", func() error {
		file, err := os.Open(s.Environment.AuditLog())
		if err != nil {
			return err
		}
		defer file.Close()
		lines := bufio.NewScanner(file)
		lines.Buffer(nil, 1<<22)
		for lines.Scan() {
			var event AuditEvent
			if json.Unmarshal(lines.Bytes(), &event) != nil {
				continue // The last line may be half written.
			}
			if event.Stage == "ResponseComplete" && event.ObjectRef.Namespace == s.Namespace && is(event) {
				found = event
				return nil
			}
		}
		if err := lines.Err(); err != nil {
			return err
		}
		return fmt.Errorf("no such line in %s", file.Name())
	})
	return found
}
