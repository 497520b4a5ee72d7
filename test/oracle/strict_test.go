package oracle

import (
	"fmt"
	"reflect"
	"strings"

	"github.com/anthropics/anthropic-sdk-go/packages/respjson"
)

// lacking lists the fields that the types of the official client say are always there, and that an answer does not
// have, or not as their type has them. It looks at all that the answer holds.
func lacking(answer any) (fields []string) {
	lacks(reflect.ValueOf(answer), "", &fields)
	return fields
}

func lacks(v reflect.Value, at string, fields *[]string) {
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		if !v.IsNil() {
			lacks(v.Elem(), at, fields)
		}
	case reflect.Slice:
		for i := range v.Len() {
			lacks(v.Index(i), fmt.Sprintf("%s[%d]", at, i), fields)
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			lacks(each.Value(), fmt.Sprint(at, ".", each.Key()), fields)
		}
	case reflect.Struct:
		told := v.FieldByName("JSON")
		if !told.IsValid() {
			return
		}
		if variant := v.MethodByName("AsAny"); variant.IsValid() { // a union: what it is says what is needed
			is := variant.Call(nil)[0]
			if is.IsNil() {
				*fields = append(*fields, strings.TrimPrefix(at, ".")+" is of no known type")
			}
			lacks(is, at, fields)
			return
		}
		for i := range v.NumField() {
			f := v.Type().Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			of := told.FieldByName(f.Name)
			if !of.IsValid() || name == "" {
				continue
			}
			said := of.Interface().(respjson.Field)
			raw := said.Raw()
			switch path := strings.TrimPrefix(at+"."+name, "."); {
			case raw == "" && (f.Tag.Get("api") == "required" || f.Tag.Get("default") != ""):
				*fields = append(*fields, path+" is missing")
			case raw != "" && raw != "null" && !said.Valid():
				*fields = append(*fields, path+" is "+raw)
			case raw != "" && raw != "null":
				lacks(v.Field(i), path, fields)
			}
		}
	}
}
