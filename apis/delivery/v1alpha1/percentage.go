package v1alpha1

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
)

// Percentage is a whole number of percent. It is read from 10 and from "10%", and written as a number.
type Percentage int32

// UnmarshalJSON reads a number, or a string of one that may end in a percent sign.
func (p *Percentage) UnmarshalJSON(data []byte) error {
	text := string(data)
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(data, &text); err != nil {
			return err
		}
		text = strings.TrimSuffix(text, "%")
	}
	number, err := strconv.ParseInt(text, 10, 32)
	if err != nil {
		return fmt.Errorf(`%s is not a percentage: want a whole number, such as 10 or "10%%"`, data)
	}
	*p = Percentage(number)
	return nil
}

// OpenAPISchemaType tells that it is a number or a string.
func (Percentage) OpenAPISchemaType() []string { return []string{"string"} }

// OpenAPISchemaFormat tells that it is a number or a string.
func (Percentage) OpenAPISchemaFormat() string { return "int-or-string" }
