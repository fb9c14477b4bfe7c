package words

import (
	"encoding/json"
	"testing"
)

func TestJSONShowsNotesAsTexts(t *testing.T) {
	notes := []Note{{Code: NoteNoRoom, Parts: []Part{{Name: "east", Replicas: 2}, {Name: "west", Replicas: 1}}}}
	got, err := json.Marshal(notes)
	if want := `["waiting for room: 2 on east and 1 on west"]`; err != nil || string(got) != want {
		t.Errorf("got %s, %v, want %s", got, err, want)
	}
}
