package schema

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"orch.io/controlplane/api/check"
	"orch.io/controlplane/api/names"
)

// messages are violations as the reference server reports them: the schema of a field, then
// values, each followed by its causes, one per line; a valid value has none.
var messages = []struct{ field, schema, values string }{
	{"s", `{"type":"string"}`, `
1
	TypeInvalid spec.s: Invalid value: "integer": spec.s in body must be of type string: "integer"
1.5
	TypeInvalid spec.s: Invalid value: "number": spec.s in body must be of type string: "number"
true
	TypeInvalid spec.s: Invalid value: "boolean": spec.s in body must be of type string: "boolean"
{"x":"a"}
	TypeInvalid spec.s: Invalid value: "object": spec.s in body must be of type string: "object"
["a"]
	TypeInvalid spec.s: Invalid value: "array": spec.s in body must be of type string: "array"
{}
	TypeInvalid spec.s: Invalid value: "object": spec.s in body must be of type string: "object"
[]
	TypeInvalid spec.s: Invalid value: "array": spec.s in body must be of type string: "array"
1.0
	TypeInvalid spec.s: Invalid value: "number": spec.s in body must be of type string: "number"
1e3
	TypeInvalid spec.s: Invalid value: "number": spec.s in body must be of type string: "number"
`},
	{"i", `{"type":"integer"}`, `
"x"
	TypeInvalid spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"
1
1.5
	TypeInvalid spec.i: Invalid value: "number": spec.i in body must be of type integer: "number"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.i
true
	TypeInvalid spec.i: Invalid value: "boolean": spec.i in body must be of type integer: "boolean"
{"x":"a"}
	TypeInvalid spec.i: Invalid value: "object": spec.i in body must be of type integer: "object"
["a"]
	TypeInvalid spec.i: Invalid value: "array": spec.i in body must be of type integer: "array"
null
{}
	TypeInvalid spec.i: Invalid value: "object": spec.i in body must be of type integer: "object"
[]
	TypeInvalid spec.i: Invalid value: "array": spec.i in body must be of type integer: "array"
""
	TypeInvalid spec.i: Invalid value: "string": spec.i in body must be of type integer: "string"
1.0
1e3
`},
	{"num", `{"type":"number"}`, `
"x"
	TypeInvalid spec.num: Invalid value: "string": spec.num in body must be of type number: "string"
1
1.5
true
	TypeInvalid spec.num: Invalid value: "boolean": spec.num in body must be of type number: "boolean"
{"x":"a"}
	TypeInvalid spec.num: Invalid value: "object": spec.num in body must be of type number: "object"
["a"]
	TypeInvalid spec.num: Invalid value: "array": spec.num in body must be of type number: "array"
null
{}
	TypeInvalid spec.num: Invalid value: "object": spec.num in body must be of type number: "object"
[]
	TypeInvalid spec.num: Invalid value: "array": spec.num in body must be of type number: "array"
""
	TypeInvalid spec.num: Invalid value: "string": spec.num in body must be of type number: "string"
1.0
1e3
`},
	{"b", `{"type":"boolean"}`, `
"x"
	TypeInvalid spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"
1
	TypeInvalid spec.b: Invalid value: "integer": spec.b in body must be of type boolean: "integer"
1.5
	TypeInvalid spec.b: Invalid value: "number": spec.b in body must be of type boolean: "number"
{"x":"a"}
	TypeInvalid spec.b: Invalid value: "object": spec.b in body must be of type boolean: "object"
["a"]
	TypeInvalid spec.b: Invalid value: "array": spec.b in body must be of type boolean: "array"
{}
	TypeInvalid spec.b: Invalid value: "object": spec.b in body must be of type boolean: "object"
[]
	TypeInvalid spec.b: Invalid value: "array": spec.b in body must be of type boolean: "array"
""
	TypeInvalid spec.b: Invalid value: "string": spec.b in body must be of type boolean: "string"
1.0
	TypeInvalid spec.b: Invalid value: "number": spec.b in body must be of type boolean: "number"
1e3
	TypeInvalid spec.b: Invalid value: "number": spec.b in body must be of type boolean: "number"
`},
	{"o", `{"type":"object","properties":{"x":{"type":"string"},"y":{"type":"integer"}}}`, `
"x"
	TypeInvalid spec.o: Invalid value: "string": spec.o in body must be of type object: "string"
1
	TypeInvalid spec.o: Invalid value: "integer": spec.o in body must be of type object: "integer"
1.5
	TypeInvalid spec.o: Invalid value: "number": spec.o in body must be of type object: "number"
true
	TypeInvalid spec.o: Invalid value: "boolean": spec.o in body must be of type object: "boolean"
["a"]
	TypeInvalid spec.o: Invalid value: "array": spec.o in body must be of type object: "array"
[]
	TypeInvalid spec.o: Invalid value: "array": spec.o in body must be of type object: "array"
""
	TypeInvalid spec.o: Invalid value: "string": spec.o in body must be of type object: "string"
1.0
	TypeInvalid spec.o: Invalid value: "number": spec.o in body must be of type object: "number"
1e3
	TypeInvalid spec.o: Invalid value: "number": spec.o in body must be of type object: "number"
`},
	{"l", `{"type":"array","items":{"type":"string"}}`, `
"x"
	TypeInvalid spec.l: Invalid value: "string": spec.l in body must be of type array: "string"
1
	TypeInvalid spec.l: Invalid value: "integer": spec.l in body must be of type array: "integer"
1.5
	TypeInvalid spec.l: Invalid value: "number": spec.l in body must be of type array: "number"
true
	TypeInvalid spec.l: Invalid value: "boolean": spec.l in body must be of type array: "boolean"
{"x":"a"}
	TypeInvalid spec.l: Invalid value: "object": spec.l in body must be of type array: "object"
{}
	TypeInvalid spec.l: Invalid value: "object": spec.l in body must be of type array: "object"
""
	TypeInvalid spec.l: Invalid value: "string": spec.l in body must be of type array: "string"
1.0
	TypeInvalid spec.l: Invalid value: "number": spec.l in body must be of type array: "number"
1e3
	TypeInvalid spec.l: Invalid value: "number": spec.l in body must be of type array: "number"
[1,2,3]
	TypeInvalid spec.l[0]: Invalid value: "integer": spec.l[0] in body must be of type string: "integer"
	TypeInvalid spec.l[1]: Invalid value: "integer": spec.l[1] in body must be of type string: "integer"
	TypeInvalid spec.l[2]: Invalid value: "integer": spec.l[2] in body must be of type string: "integer"
[1,"a",null,true]
	TypeInvalid spec.l[0]: Invalid value: "integer": spec.l[0] in body must be of type string: "integer"
	TypeInvalid spec.l[2]: Invalid value: "null": spec.l[2] in body must be of type string: "null"
	TypeInvalid spec.l[3]: Invalid value: "boolean": spec.l[3] in body must be of type string: "boolean"
 [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1]
	TypeInvalid spec.l[0]: Invalid value: "integer": spec.l[0] in body must be of type string: "integer"
	TypeInvalid spec.l[1]: Invalid value: "integer": spec.l[1] in body must be of type string: "integer"
	TypeInvalid spec.l[2]: Invalid value: "integer": spec.l[2] in body must be of type string: "integer"
	TypeInvalid spec.l[3]: Invalid value: "integer": spec.l[3] in body must be of type string: "integer"
	TypeInvalid spec.l[4]: Invalid value: "integer": spec.l[4] in body must be of type string: "integer"
	TypeInvalid spec.l[5]: Invalid value: "integer": spec.l[5] in body must be of type string: "integer"
	TypeInvalid spec.l[6]: Invalid value: "integer": spec.l[6] in body must be of type string: "integer"
	TypeInvalid spec.l[7]: Invalid value: "integer": spec.l[7] in body must be of type string: "integer"
	TypeInvalid spec.l[8]: Invalid value: "integer": spec.l[8] in body must be of type string: "integer"
	TypeInvalid spec.l[9]: Invalid value: "integer": spec.l[9] in body must be of type string: "integer"
	TypeInvalid spec.l[10]: Invalid value: "integer": spec.l[10] in body must be of type string: "integer"
	TypeInvalid spec.l[11]: Invalid value: "integer": spec.l[11] in body must be of type string: "integer"
	TypeInvalid spec.l[12]: Invalid value: "integer": spec.l[12] in body must be of type string: "integer"
	TypeInvalid spec.l[13]: Invalid value: "integer": spec.l[13] in body must be of type string: "integer"
	TypeInvalid spec.l[14]: Invalid value: "integer": spec.l[14] in body must be of type string: "integer"
	TypeInvalid spec.l[15]: Invalid value: "integer": spec.l[15] in body must be of type string: "integer"
	TypeInvalid spec.l[16]: Invalid value: "integer": spec.l[16] in body must be of type string: "integer"
	TypeInvalid spec.l[17]: Invalid value: "integer": spec.l[17] in body must be of type string: "integer"
	TypeInvalid spec.l[18]: Invalid value: "integer": spec.l[18] in body must be of type string: "integer"
	TypeInvalid spec.l[19]: Invalid value: "integer": spec.l[19] in body must be of type string: "integer"
	TypeInvalid spec.l[20]: Invalid value: "integer": spec.l[20] in body must be of type string: "integer"
	TypeInvalid spec.l[21]: Invalid value: "integer": spec.l[21] in body must be of type string: "integer"
	TypeInvalid spec.l[22]: Invalid value: "integer": spec.l[22] in body must be of type string: "integer"
	TypeInvalid spec.l[23]: Invalid value: "integer": spec.l[23] in body must be of type string: "integer"
	TypeInvalid spec.l[24]: Invalid value: "integer": spec.l[24] in body must be of type string: "integer"
	TypeInvalid spec.l[25]: Invalid value: "integer": spec.l[25] in body must be of type string: "integer"
	TypeInvalid spec.l[26]: Invalid value: "integer": spec.l[26] in body must be of type string: "integer"
	TypeInvalid spec.l[27]: Invalid value: "integer": spec.l[27] in body must be of type string: "integer"
	TypeInvalid spec.l[28]: Invalid value: "integer": spec.l[28] in body must be of type string: "integer"
	TypeInvalid spec.l[29]: Invalid value: "integer": spec.l[29] in body must be of type string: "integer"
`},
	{"ni", `{"type":"integer","nullable":true}`, `
"x"
	TypeInvalid spec.ni: Invalid value: "string": spec.ni in body must be of type integer: "string"
1
1.5
	TypeInvalid spec.ni: Invalid value: "number": spec.ni in body must be of type integer: "number"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.ni
true
	TypeInvalid spec.ni: Invalid value: "boolean": spec.ni in body must be of type integer: "boolean"
{"x":"a"}
	TypeInvalid spec.ni: Invalid value: "object": spec.ni in body must be of type integer: "object"
["a"]
	TypeInvalid spec.ni: Invalid value: "array": spec.ni in body must be of type integer: "array"
null
{}
	TypeInvalid spec.ni: Invalid value: "object": spec.ni in body must be of type integer: "object"
[]
	TypeInvalid spec.ni: Invalid value: "array": spec.ni in body must be of type integer: "array"
""
	TypeInvalid spec.ni: Invalid value: "string": spec.ni in body must be of type integer: "string"
1.0
1e3
`},
	{"ios", `{"x-kubernetes-int-or-string":true}`, `
"x"
1
1.5
	TypeInvalid spec.ios: Invalid value: "number": spec.ios in body must be of type integer,string: "number"
true
	TypeInvalid spec.ios: Invalid value: "boolean": spec.ios in body must be of type integer,string: "boolean"
{"x":"a"}
	TypeInvalid spec.ios: Invalid value: "object": spec.ios in body must be of type integer,string: "object"
["a"]
	TypeInvalid spec.ios: Invalid value: "array": spec.ios in body must be of type integer,string: "array"
null
{}
	TypeInvalid spec.ios: Invalid value: "object": spec.ios in body must be of type integer,string: "object"
[]
	TypeInvalid spec.ios: Invalid value: "array": spec.ios in body must be of type integer,string: "array"
""
1.0
1e3
`},
	{"ios2", `{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"integer"},{"type":"string"}],"pattern":"^[0-9]+%$","maximum":5}`, `
"5%"
"x"
	Invalid spec.ios2: Invalid value: "x": spec.ios2 in body should match '^[0-9]+%$'
4
6
	Invalid spec.ios2: Invalid value: 6: spec.ios2 in body should be less than or equal to 5
"66"
	Invalid spec.ios2: Invalid value: "66": spec.ios2 in body should match '^[0-9]+%$'
1.5
	TypeInvalid spec.ios2: Invalid value: "number": spec.ios2 in body must be of type integer,string: "number"
	Invalid <nil>: Invalid value: "": "spec.ios2" must validate at least one schema (anyOf)
	TypeInvalid spec.ios2: Invalid value: "number": spec.ios2 in body must be of type integer: "number"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer (default format) in spec.ios2
`},
	{"min", `{"type":"integer","minimum":2}`, `
1
	Invalid spec.min: Invalid value: 1: spec.min in body should be greater than or equal to 2
2
1.0
	Invalid spec.min: Invalid value: 1: spec.min in body should be greater than or equal to 2
-5
	Invalid spec.min: Invalid value: -5: spec.min in body should be greater than or equal to 2
`},
	{"max", `{"type":"integer","maximum":2}`, `
3
	Invalid spec.max: Invalid value: 3: spec.max in body should be less than or equal to 2
2
3.0
	Invalid spec.max: Invalid value: 3: spec.max in body should be less than or equal to 2
12345678
	Invalid spec.max: Invalid value: 12345678: spec.max in body should be less than or equal to 2
`},
	{"xmin", `{"type":"integer","minimum":2,"exclusiveMinimum":true}`, `
2
	Invalid spec.xmin: Invalid value: 2: spec.xmin in body should be greater than 2
3
`},
	{"xmax", `{"type":"integer","maximum":2,"exclusiveMaximum":true}`, `
2
	Invalid spec.xmax: Invalid value: 2: spec.xmax in body should be less than 2
1
`},
	{"nmin", `{"type":"number","minimum":2.5}`, `
2.25
	Invalid spec.nmin: Invalid value: 2.25: spec.nmin in body should be greater than or equal to 2.5
`},
	{"nmax", `{"type":"number","maximum":2.5}`, `
2.75
	Invalid spec.nmax: Invalid value: 2.75: spec.nmax in body should be less than or equal to 2.5
1e30
	Invalid spec.nmax: Invalid value: 1e+30: spec.nmax in body should be less than or equal to 2.5
`},
	{"nxmin", `{"type":"number","minimum":2.5,"exclusiveMinimum":true}`, `
2.5
	Invalid spec.nxmin: Invalid value: 2.5: spec.nxmin in body should be greater than 2.5
`},
	{"nxmax", `{"type":"number","maximum":2.5,"exclusiveMaximum":true}`, `
2.5
	Invalid spec.nxmax: Invalid value: 2.5: spec.nxmax in body should be less than 2.5
`},
	{"bigmax", `{"type":"number","maximum":1e+21}`, `
1e22
	Invalid spec.bigmax: Invalid value: 1e+22: spec.bigmax in body should be less than or equal to 1e+21
`},
	{"bigimax", `{"type":"integer","maximum":10000000}`, `
10000001
	Invalid spec.bigimax: Invalid value: 10000001: spec.bigimax in body should be less than or equal to 10000000
100000000000
	Invalid spec.bigimax: Invalid value: 100000000000: spec.bigimax in body should be less than or equal to 10000000
`},
	{"mul", `{"type":"integer","multipleOf":3}`, `
4
	Invalid spec.mul: Invalid value: 4: spec.mul in body should be a multiple of 3
-4
	Invalid spec.mul: Invalid value: -4: spec.mul in body should be a multiple of 3
3
`},
	{"nmul", `{"type":"number","multipleOf":0.1}`, `
0.25
	Invalid spec.nmul: Invalid value: 0.25: spec.nmul in body should be a multiple of 0.1
0.3
0.7
`},
	{"i32", `{"type":"integer","format":"int32"}`, `
3000000000
	Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32
-3000000000
	Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32
1
1.5
	TypeInvalid spec.i32: Invalid value: "float64": spec.i32 in body must be of type int32: "float64"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.i32
`},
	{"i64", `{"type":"integer","format":"int64"}`, `
9223372036854775807
9223372036854775808
	TypeInvalid spec.i64: Invalid value: "float64": spec.i64 in body must be of type int64: "float64"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.i64
1e30
	TypeInvalid spec.i64: Invalid value: "float64": spec.i64 in body must be of type int64: "float64"
	Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int64 in spec.i64
`},
	{"fl", `{"type":"number","format":"float"}`, `
1e39
	Invalid <nil>: Invalid value: "": Checked value must be of type number with format float in spec.fl
1
0.1
`},
	{"dbl", `{"type":"number","format":"double"}`, `
1e308
`},
	{"n32", `{"type":"number","format":"int32"}`, `
3000000000
1.5
`},
	{"minlen", `{"type":"string","minLength":2}`, `
"a"
	Invalid spec.minlen: Invalid value: "a": spec.minlen in body should be at least 2 chars long
""
	Invalid spec.minlen: Invalid value: "": spec.minlen in body should be at least 2 chars long
"\u00e9"
	Invalid spec.minlen: Invalid value: "é": spec.minlen in body should be at least 2 chars long
`},
	{"maxlen", `{"type":"string","maxLength":3}`, `
"abcd"
	TooLong spec.maxlen: Too long: may not be more than 3 bytes
"\u00e9\u00e9\u00e9"
`},
	{"pat", `{"type":"string","pattern":"^a"}`, `
"b"
	Invalid spec.pat: Invalid value: "b": spec.pat in body should match '^a'
""
	Invalid spec.pat: Invalid value: "": spec.pat in body should match '^a'
`},
	{"minpat", `{"type":"string","minLength":2,"pattern":"^a","maxLength":4}`, `
"b"
	Invalid spec.minpat: Invalid value: "b": spec.minpat in body should be at least 2 chars long
"bbbbbbb"
	TooLong spec.minpat: Too long: may not be more than 4 bytes
"bb"
	Invalid spec.minpat: Invalid value: "bb": spec.minpat in body should match '^a'
`},
	{"pat2", `{"type":"string","pattern":"^'\"a\\d%s$"}`, `
"q\"\u003c'"
	Invalid spec.pat2: Invalid value: "q\"<'": spec.pat2 in body should match '^'"a\d%s$'
`},
	{"enum", `{"type":"string","enum":["a","b"]}`, `
"c"
	NotSupported spec.enum: Unsupported value: "c": supported values: "a", "b"
""
	NotSupported spec.enum: Unsupported value: "": supported values: "a", "b"
1
	TypeInvalid spec.enum: Invalid value: "integer": spec.enum in body must be of type string: "integer"
	NotSupported spec.enum: Unsupported value: 1: supported values: "a", "b"
null
`},
	{"enum1", `{"type":"string","enum":["a"]}`, `
"c"
	NotSupported spec.enum1: Unsupported value: "c": supported values: "a"
`},
	{"ienum", `{"type":"integer","enum":[1,2]}`, `
3
	NotSupported spec.ienum: Unsupported value: 3: supported values: "1", "2"
1.0
"1"
	TypeInvalid spec.ienum: Invalid value: "string": spec.ienum in body must be of type integer: "string"
	NotSupported spec.ienum: Unsupported value: "1": supported values: "1", "2"
`},
	{"nenum", `{"type":"number","enum":[1.5,2]}`, `
3
	NotSupported spec.nenum: Unsupported value: 3: supported values: "1.5", "2"
1.5
2
`},
	{"benum", `{"type":"boolean","enum":[true]}`, `
false
	NotSupported spec.benum: Unsupported value: false: supported values: "true"
true
`},
	{"oenum", `{"type":"object","properties":{"a":{"type":"integer"}},"enum":[{"a":1}]}`, `
{"a":2}
	NotSupported spec.oenum: Unsupported value: {"a":2}: supported values: "{\"a\":1}"
{"a":1}
{}
	NotSupported spec.oenum: Unsupported value: {}: supported values: "{\"a\":1}"
`},
	{"lenum", `{"type":"array","items":{"type":"integer"},"enum":[[1,2]]}`, `
[1]
	NotSupported spec.lenum: Unsupported value: [1]: supported values: "[1,2]"
[1,2]
`},
	{"nullenum", `{"type":"string","nullable":true,"enum":["a"]}`, `
null
	NotSupported spec.nullenum: Unsupported value: null: supported values: "a"
"b"
	NotSupported spec.nullenum: Unsupported value: "b": supported values: "a"
`},
	{"nullenum2", `{"type":"string","nullable":true,"enum":["a",null]}`, `
"b"
	NotSupported spec.nullenum2: Unsupported value: "b": supported values: "a", "null"
`},
	{"iosenum", `{"x-kubernetes-int-or-string":true,"enum":[1,"a"]}`, `
2
	NotSupported spec.iosenum: Unsupported value: 2: supported values: "1", "a"
"b"
	NotSupported spec.iosenum: Unsupported value: "b": supported values: "1", "a"
1
"a"
`},
	{"fenum", `{"type":"string","format":"date","enum":["2020-01-01"],"minLength":3}`, `
"x"
	Invalid spec.fenum: Invalid value: "x": spec.fenum in body should be at least 3 chars long
	TypeInvalid spec.fenum: Invalid value: "x": spec.fenum in body must be of type date: "x"
	NotSupported spec.fenum: Unsupported value: "x": supported values: "2020-01-01"
"xxxx"
	TypeInvalid spec.fenum: Invalid value: "xxxx": spec.fenum in body must be of type date: "xxxx"
	NotSupported spec.fenum: Unsupported value: "xxxx": supported values: "2020-01-01"
`},
	{"req", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"object","properties":{"c":{"type":"string"}},"required":["c"]}},"required":["a","b"]}`, `
{}
	Required spec.req.a: Required value
	Required spec.req.b: Required value
{"a":"x"}
	Required spec.req.b: Required value
{"a":"x","b":{}}
	Required spec.req.b.c: Required value
{"b":{}}
	Required spec.req.b.c: Required value
	Required spec.req.a: Required value
{"a":null,"b":null}
	Required spec.req.a: Required value
	Required spec.req.b: Required value
`},
	{"reqd", `{"type":"object","properties":{"a":{"type":"string","default":"x"},"b":{"type":"string"}},"required":["b","a"]}`, `
{}
	Required spec.reqd.b: Required value
{"a":null}
	Required spec.reqd.b: Required value
`},
	{"reqmap", `{"type":"object","additionalProperties":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`, `
{"m":{}}
	Required spec.reqmap.m.a: Required value
{"m":1}
	TypeInvalid spec.reqmap.m: Invalid value: "integer": spec.reqmap.m in body must be of type object: "integer"
`},
	{"reqlist", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}`, `
[{}]
	Required spec.reqlist[0].a: Required value
[{"a":"x"},{},{}]
	Required spec.reqlist[1].a: Required value
	Required spec.reqlist[2].a: Required value
[null]
	TypeInvalid spec.reqlist[0]: Invalid value: "null": spec.reqlist[0] in body must be of type object: "null"
`},
	{"reqx", `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"required":["q","p"]}`, `
{}
	Required spec.reqx.q: Required value
	Required spec.reqx.p: Required value
{"p":null}
	Required spec.reqx.q: Required value
`},
	{"minitems", `{"type":"array","items":{"type":"string"},"minItems":1}`, `
[]
	Invalid spec.minitems: Invalid value: 0: spec.minitems in body should have at least 1 items
`},
	{"maxitems", `{"type":"array","items":{"type":"string"},"maxItems":1}`, `
["a","b"]
	TooMany spec.maxitems: Too many: 2: must have at most 1 item
["a",1]
	TypeInvalid spec.maxitems[1]: Invalid value: "integer": spec.maxitems[1] in body must be of type string: "integer"
	TooMany spec.maxitems: Too many: 2: must have at most 1 item
`},
	{"items2", `{"type":"array","items":{"type":"string","maxLength":1},"maxItems":1}`, `
["aa","bb"]
	TooLong spec.items2[0]: Too long: may not be more than 1 byte
	TooLong spec.items2[1]: Too long: may not be more than 1 byte
	TooMany spec.items2: Too many: 2: must have at most 1 item
`},
	{"minprops", `{"type":"object","additionalProperties":{"type":"string"},"minProperties":1}`, `
{}
	Invalid spec.minprops: Invalid value: 0: spec.minprops in body should have at least 1 properties
`},
	{"maxprops", `{"type":"object","additionalProperties":{"type":"string"},"maxProperties":1}`, `
{"a":"b","c":"d"}
	TooMany spec.maxprops: Too many: 2: must have at most 1 item
{"a":1,"c":"d"}
	TooMany spec.maxprops: Too many: 2: must have at most 1 item
	TypeInvalid spec.maxprops.a: Invalid value: "integer": spec.maxprops.a in body must be of type string: "integer"
`},
	{"map", `{"type":"object","additionalProperties":{"type":"integer","maximum":2}}`, `
{"a":3}
	Invalid spec.map.a: Invalid value: 3: spec.map.a in body should be less than or equal to 2
{"a":3,"b":4}
	Invalid spec.map.a: Invalid value: 3: spec.map.a in body should be less than or equal to 2
	Invalid spec.map.b: Invalid value: 4: spec.map.b in body should be less than or equal to 2
{"a":"x"}
	TypeInvalid spec.map.a: Invalid value: "string": spec.map.a in body must be of type integer: "string"
{"a.b":3}
	Invalid spec.map.a.b: Invalid value: 3: spec.map.a.b in body should be less than or equal to 2
{"a":null}
{"":3}
	Invalid spec.map.: Invalid value: 3: spec.map. in body should be less than or equal to 2
`},
	{"maps", `{"type":"object","additionalProperties":{"type":"string","maxLength":2}}`, `
{"a":"xxx"}
	TooLong spec.maps.a: Too long: may not be more than 2 bytes
`},
	{"mapo", `{"type":"object","additionalProperties":{"type":"object","properties":{"x":{"type":"string"}}}}`, `
{"a":1}
	TypeInvalid spec.mapo.a: Invalid value: "integer": spec.mapo.a in body must be of type object: "integer"
{"a":{"x":1}}
	TypeInvalid spec.mapo.a.x: Invalid value: "integer": spec.mapo.a.x in body must be of type string: "integer"
`},
	{"mapl", `{"type":"object","additionalProperties":{"type":"array","items":{"type":"integer"}}}`, `
{"a":["x"]}
	TypeInvalid spec.mapl.a[0]: Invalid value: "string": spec.mapl.a[0] in body must be of type integer: "string"
{"a":[1,"x"]}
	TypeInvalid spec.mapl.a[1]: Invalid value: "string": spec.mapl.a[1] in body must be of type integer: "string"
`},
	{"set", `{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set"}`, `
["a","a"]
	Duplicate spec.set[1]: Duplicate value: "a"
["a","b","a","b","a"]
	Duplicate spec.set[2]: Duplicate value: "a"
	Duplicate spec.set[3]: Duplicate value: "b"
["a",1,1]
	TypeInvalid spec.set[1]: Invalid value: "integer": spec.set[1] in body must be of type string: "integer"
	TypeInvalid spec.set[2]: Invalid value: "integer": spec.set[2] in body must be of type string: "integer"
	Duplicate spec.set[2]: Duplicate value: 1
 ["a", "a", "a", "a", "a", "a", "a", "a", "a", "a"]
	Duplicate spec.set[1]: Duplicate value: "a"
`},
	{"iset", `{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"set"}`, `
[1,1]
	Duplicate spec.iset[1]: Duplicate value: 1
`},
	{"nset", `{"type":"array","items":{"type":"number"},"x-kubernetes-list-type":"set"}`, `
[1.5,1.5]
	Duplicate spec.nset[1]: Duplicate value: 1.5
`},
	{"oset", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"x-kubernetes-map-type":"atomic"},"x-kubernetes-list-type":"set"}`, `
[{"a":1},{"a":1}]
	Duplicate spec.oset[1]: Duplicate value: {"a":1}
[{},{}]
	Duplicate spec.oset[1]: Duplicate value: {}
`},
	{"lset", `{"type":"array","items":{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"atomic"},"x-kubernetes-list-type":"set"}`, `
[[1],[1]]
	Duplicate spec.lset[1]: Duplicate value: [1]
`},
	{"lmap", `{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"v":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `
[{"k":"a"},{"k":"a"}]
	Duplicate spec.lmap[1]: Duplicate value: {"k":"a"}
[{"k":"a","v":"1"},{"k":"a","v":"2"},{"k":"a"}]
	Duplicate spec.lmap[1]: Duplicate value: {"k":"a"}
[{"v":"1"}]
	Required spec.lmap[0].k: Required value
[{},{}]
	Required spec.lmap[0].k: Required value
	Required spec.lmap[1].k: Required value
	Duplicate spec.lmap[1]: Duplicate value: {}
[{"k":1},{"k":1}]
	TypeInvalid spec.lmap[0].k: Invalid value: "integer": spec.lmap[0].k in body must be of type string: "integer"
	TypeInvalid spec.lmap[1].k: Invalid value: "integer": spec.lmap[1].k in body must be of type string: "integer"
	Duplicate spec.lmap[1]: Duplicate value: {"k":1}
[{"k":"a"},{"k":"b"},{"k":"b"},{"k":"a"}]
	Duplicate spec.lmap[2]: Duplicate value: {"k":"b"}
	Duplicate spec.lmap[3]: Duplicate value: {"k":"a"}
`},
	{"lmap2", `{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"},"p":{"type":"integer","default":1},"v":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","p"]}`, `
[{"k":"a"},{"k":"a"}]
	Duplicate spec.lmap2[1]: Duplicate value: {"k":"a","p":1}
[{"k":"a","p":1},{"k":"a"}]
	Duplicate spec.lmap2[1]: Duplicate value: {"k":"a","p":1}
[{"k":"a","p":2},{"k":"a"}]
`},
	{"lmap3", `{"type":"array","items":{"type":"object","properties":{"p":{"type":"integer"},"k":{"type":"string"}},"required":["k","p"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["p","k"]}`, `
[{"k":"a","p":1},{"k":"a","p":1}]
	Duplicate spec.lmap3[1]: Duplicate value: {"k":"a","p":1}
`},
	{"allof", `{"type":"string","allOf":[{"minLength":2},{"pattern":"^a"}]}`, `
"b"
	Invalid spec.allof: Invalid value: "b": spec.allof in body should be at least 2 chars long
	Invalid spec.allof: Invalid value: "b": spec.allof in body should match '^a'
	Invalid <nil>: Invalid value: "": "spec.allof" must validate all the schemas (allOf). None validated
"ab"
"bb"
	Invalid spec.allof: Invalid value: "bb": spec.allof in body should match '^a'
	Invalid <nil>: Invalid value: "": "spec.allof" must validate all the schemas (allOf)
"a"
	Invalid spec.allof: Invalid value: "a": spec.allof in body should be at least 2 chars long
	Invalid <nil>: Invalid value: "": "spec.allof" must validate all the schemas (allOf)
`},
	{"anyof", `{"type":"string","anyOf":[{"minLength":2},{"pattern":"^a"}]}`, `
"b"
	Invalid <nil>: Invalid value: "": "spec.anyof" must validate at least one schema (anyOf)
	Invalid spec.anyof: Invalid value: "b": spec.anyof in body should be at least 2 chars long
"bb"
"ab"
`},
	{"oneof", `{"type":"string","oneOf":[{"minLength":2},{"pattern":"^a"}]}`, `
"b"
	Invalid <nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found none valid
	Invalid spec.oneof: Invalid value: "b": spec.oneof in body should be at least 2 chars long
"ab"
	Invalid <nil>: Invalid value: "": "spec.oneof" must validate one and only one schema (oneOf). Found 2 valid alternatives
"bb"
`},
	{"not", `{"type":"string","not":{"pattern":"^a"}}`, `
"a"
	Invalid <nil>: Invalid value: "": "spec.not" must not validate the schema (not)
"b"
`},
	{"allofo", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"allOf":[{"required":["a"]},{"required":["b"]}]}`, `
{}
	Required spec.allofo.a: Required value
	Required spec.allofo.b: Required value
	Invalid <nil>: Invalid value: "": "spec.allofo" must validate all the schemas (allOf). None validated
{"a":"x"}
	Required spec.allofo.b: Required value
	Invalid <nil>: Invalid value: "": "spec.allofo" must validate all the schemas (allOf)
`},
	{"anyofo", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"anyOf":[{"required":["a"]},{"required":["b"]}]}`, `
{}
	Invalid <nil>: Invalid value: "": "spec.anyofo" must validate at least one schema (anyOf)
	Required spec.anyofo.a: Required value
{"a":"x","b":"x"}
`},
	{"oneofo", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"oneOf":[{"required":["a"]},{"required":["b"]}]}`, `
{}
	Invalid <nil>: Invalid value: "": "spec.oneofo" must validate one and only one schema (oneOf). Found none valid
	Required spec.oneofo.a: Required value
{"a":"x","b":"x"}
	Invalid <nil>: Invalid value: "": "spec.oneofo" must validate one and only one schema (oneOf). Found 2 valid alternatives
`},
	{"noto", `{"type":"object","properties":{"a":{"type":"string"},"b":{"type":"string"}},"not":{"required":["a"]}}`, `
{"a":"x"}
	Invalid <nil>: Invalid value: "": "spec.noto" must not validate the schema (not)
`},
	{"oneofdeep", `{"type":"object","properties":{"a":{"type":"object","properties":{"n":{"type":"integer"}}},"b":{"type":"string"}},"oneOf":[{"properties":{"a":{"properties":{"n":{"minimum":5}}}},"required":["a"]},{"properties":{"b":{"minLength":3}},"required":["b"]}]}`, `
{}
	Invalid <nil>: Invalid value: "": "spec.oneofdeep" must validate one and only one schema (oneOf). Found none valid
	Required spec.oneofdeep.a: Required value
{"a":{"n":1}}
	Invalid <nil>: Invalid value: "": "spec.oneofdeep" must validate one and only one schema (oneOf). Found none valid
	Invalid spec.oneofdeep.a.n: Invalid value: 1: spec.oneofdeep.a.n in body should be greater than or equal to 5
{"a":{"n":1},"b":"x"}
	Invalid <nil>: Invalid value: "": "spec.oneofdeep" must validate one and only one schema (oneOf). Found none valid
	Invalid spec.oneofdeep.a.n: Invalid value: 1: spec.oneofdeep.a.n in body should be greater than or equal to 5
{"a":{"n":6},"b":"xxx"}
	Invalid <nil>: Invalid value: "": "spec.oneofdeep" must validate one and only one schema (oneOf). Found 2 valid alternatives
{"b":"x"}
	Invalid <nil>: Invalid value: "": "spec.oneofdeep" must validate one and only one schema (oneOf). Found none valid
	Invalid spec.oneofdeep.b: Invalid value: "x": spec.oneofdeep.b in body should be at least 3 chars long
`},
	{"anyofi", `{"type":"integer","anyOf":[{"minimum":10},{"maximum":3},{"enum":[5]}]}`, `
5
6
	Invalid <nil>: Invalid value: "": "spec.anyofi" must validate at least one schema (anyOf)
	Invalid spec.anyofi: Invalid value: 6: spec.anyofi in body should be greater than or equal to 10
7
	Invalid <nil>: Invalid value: "": "spec.anyofi" must validate at least one schema (anyOf)
	Invalid spec.anyofi: Invalid value: 7: spec.anyofi in body should be greater than or equal to 10
`},
	{"anyofnest", `{"type":"integer","anyOf":[{"allOf":[{"minimum":10},{"multipleOf":5}]},{"not":{"minimum":3}}]}`, `
5
	Invalid <nil>: Invalid value: "": "spec.anyofnest" must validate at least one schema (anyOf)
	Invalid spec.anyofnest: Invalid value: 5: spec.anyofnest in body should be greater than or equal to 10
	Invalid <nil>: Invalid value: "": "spec.anyofnest" must validate all the schemas (allOf)
10
11
	Invalid <nil>: Invalid value: "": "spec.anyofnest" must validate at least one schema (anyOf)
	Invalid spec.anyofnest: Invalid value: 11: spec.anyofnest in body should be a multiple of 5
	Invalid <nil>: Invalid value: "": "spec.anyofnest" must validate all the schemas (allOf)
`},
	{"allofnot", `{"type":"integer","allOf":[{"not":{"enum":[1]}},{"not":{"enum":[2]}}]}`, `
1
	Invalid <nil>: Invalid value: "": "spec.allofnot" must not validate the schema (not)
	Invalid <nil>: Invalid value: "": "spec.allofnot" must validate all the schemas (allOf)
2
	Invalid <nil>: Invalid value: "": "spec.allofnot" must not validate the schema (not)
	Invalid <nil>: Invalid value: "": "spec.allofnot" must validate all the schemas (allOf)
3
`},
	{"anyitems", `{"type":"array","items":{"type":"integer"},"anyOf":[{"maxItems":1},{"items":{"minimum":5}}]}`, `
[1,2]
	Invalid <nil>: Invalid value: "": "spec.anyitems" must validate at least one schema (anyOf)
	Invalid spec.anyitems[0]: Invalid value: 1: spec.anyitems[0] in body should be greater than or equal to 5
	Invalid spec.anyitems[1]: Invalid value: 2: spec.anyitems[1] in body should be greater than or equal to 5
[6,7]
[6,2]
	Invalid <nil>: Invalid value: "": "spec.anyitems" must validate at least one schema (anyOf)
	Invalid spec.anyitems[1]: Invalid value: 2: spec.anyitems[1] in body should be greater than or equal to 5
`},
	{"emb", `{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}`, `
{}
	Required spec.emb.apiVersion: Required value
	Required spec.emb.kind: Required value
{"apiVersion":"v1"}
	Required spec.emb.kind: Required value
{"apiVersion":"v1","kind":"X"}
{"apiVersion":"a/b/c","kind":"X"}
	Invalid spec.emb.apiVersion: Invalid value: "a/b/c": unexpected GroupVersion string: a/b/c
{"apiVersion":"v1","kind":""}
	Invalid spec.emb.kind: Invalid value: "": must not be empty
{"apiVersion":"v1","kind":"X","metadata":{"generateName":"A B"}}
{"apiVersion":"","kind":"X"}
	Invalid spec.emb.apiVersion: Invalid value: "": must not be empty
1
	TypeInvalid spec.emb: Invalid value: "integer": spec.emb in body must be of type object: "integer"
{"apiVersion":"v1","kind":"X","metadata":{"ownerReferences":[{"name":"x"}]}}
	Required spec.emb.metadata.ownerReferences[0].apiVersion: Required value: must not be empty
	Required spec.emb.metadata.ownerReferences[0].kind: Required value: must not be empty
	Required spec.emb.metadata.ownerReferences[0].uid: Required value: must not be empty
`},
	{"emb2", `{"type":"object","properties":{"spec":{"type":"object","properties":{"n":{"type":"integer","maximum":1}}}},"x-kubernetes-embedded-resource":true}`, `
{"apiVersion":"v1","kind":"X","spec":{"n":2}}
	Invalid spec.emb2.spec.n: Invalid value: 2: spec.emb2.spec.n in body should be less than or equal to 1
{"spec":{"n":2}}
	Invalid spec.emb2.spec.n: Invalid value: 2: spec.emb2.spec.n in body should be less than or equal to 1
	Required spec.emb2.apiVersion: Required value
	Required spec.emb2.kind: Required value
`},
	{"embl", `{"type":"array","items":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true}}`, `
[{}]
	Required spec.embl[0].apiVersion: Required value
	Required spec.embl[0].kind: Required value
[{"apiVersion":"v1","kind":"X"},{"kind":"X"}]
	Required spec.embl[1].apiVersion: Required value
`},
	{"listo", `{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer","maximum":2},"b":{"type":"string","enum":["x"]}}}}`, `
[{"a":3},{"a":1,"b":"y"}]
	Invalid spec.listo[0].a: Invalid value: 3: spec.listo[0].a in body should be less than or equal to 2
	NotSupported spec.listo[1].b: Unsupported value: "y": supported values: "x"
[{"a":"x"},1]
	TypeInvalid spec.listo[0].a: Invalid value: "string": spec.listo[0].a in body must be of type integer: "string"
	TypeInvalid spec.listo[1]: Invalid value: "integer": spec.listo[1] in body must be of type object: "integer"
[null]
	TypeInvalid spec.listo[0]: Invalid value: "null": spec.listo[0] in body must be of type object: "null"
`},
	{"listl", `{"type":"array","items":{"type":"array","items":{"type":"integer","maximum":2}}}`, `
[[1,3],["x"]]
	Invalid spec.listl[0][1]: Invalid value: 3: spec.listl[0][1] in body should be less than or equal to 2
	TypeInvalid spec.listl[1][0]: Invalid value: "string": spec.listl[1][0] in body must be of type integer: "string"
`},
	{"dotted", `{"type":"object","properties":{"a.b":{"type":"integer"},"c/d":{"type":"string","maxLength":1},"e f":{"type":"array","items":{"type":"integer"}}}}`, `
{"a.b":"x"}
	TypeInvalid spec.dotted.a.b: Invalid value: "string": spec.dotted.a.b in body must be of type integer: "string"
{"c/d":"xx"}
	TooLong spec.dotted.c/d: Too long: may not be more than 1 byte
{"e f":["x"]}
	TypeInvalid spec.dotted.e f[0]: Invalid value: "string": spec.dotted.e f[0] in body must be of type integer: "string"
`},
}

// TestCauseOrder: for each value, causes of combinations come first, then of its own rules,
// of values below it, and of missing fields. Embedded objects follow, then duplicates.
func TestCauseOrder(t *testing.T) {
	s, faults := OpenAPI(tree(t, `{"type":"object","required":["spec","other"],"properties":{"spec":{"type":"object","required":["r"],"properties":{
		"c":{"type":"string","minLength":3,"enum":["x"],"pattern":"^q","format":"date","allOf":[{"minLength":5}],"anyOf":[{"minLength":6}],"oneOf":[{"minLength":7}],"not":{"minLength":1}},
		"d":{"type":"object","properties":{"x":{"type":"string","maxLength":1},"y":{"type":"string","maxLength":1}},"required":["z","x"],"minProperties":4,"maxProperties":1,"enum":[{"x":"q"}],"x-kubernetes-preserve-unknown-fields":true},
		"e":{"type":"array","items":{"type":"integer","maximum":1},"minItems":4,"maxItems":1,"enum":[[1]],"allOf":[{"maxItems":0}]},
		"f":{"type":"integer","minimum":10,"maximum":1,"multipleOf":7,"enum":[3],"format":"int32","anyOf":[{"minimum":100}]},
		"g":{"type":"object","additionalProperties":{"type":"integer","maximum":1}},
		"h":{"type":"object","properties":{
			"a":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"],"items":{"type":"object","required":["k"],"properties":{"k":{"type":"string"},"s":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}}}}},
			"m":{"type":"object","x-kubernetes-embedded-resource":true,"x-kubernetes-preserve-unknown-fields":true},
			"z":{"type":"array","items":{"type":"string"},"minItems":7}}}}}}}`), names.Kubernetes, check.At("s"))
	require.Empty(t, faults)
	for value, want := range map[string]string{
		`"c":"ab"`: `Invalid <nil>: Invalid value: "": "spec.c" must validate at least one schema (anyOf)
Invalid spec.c: Invalid value: "ab": spec.c in body should be at least 6 chars long
Invalid <nil>: Invalid value: "": "spec.c" must validate one and only one schema (oneOf). Found none valid
Invalid spec.c: Invalid value: "ab": spec.c in body should be at least 7 chars long
Invalid spec.c: Invalid value: "ab": spec.c in body should be at least 5 chars long
Invalid <nil>: Invalid value: "": "spec.c" must validate all the schemas (allOf). None validated
Invalid <nil>: Invalid value: "": "spec.c" must not validate the schema (not)
Invalid spec.c: Invalid value: "ab": spec.c in body should be at least 3 chars long
TypeInvalid spec.c: Invalid value: "ab": spec.c in body must be of type date: "ab"
NotSupported spec.c: Unsupported value: "ab": supported values: "x"`,
		`"d":{"x":"aa","y":"bb"}`: `NotSupported spec.d: Unsupported value: {"x":"aa","y":"bb"}: supported values: "{\"x\":\"q\"}"
Invalid spec.d: Invalid value: 2: spec.d in body should have at least 4 properties
TooMany spec.d: Too many: 2: must have at most 1 item
TooLong spec.d.x: Too long: may not be more than 1 byte
TooLong spec.d.y: Too long: may not be more than 1 byte
Required spec.d.z: Required value`,
		`"e":[5,6]`: `TooMany spec.e: Too many: 2: must have at most 0 items
Invalid <nil>: Invalid value: "": "spec.e" must validate all the schemas (allOf). None validated
Invalid spec.e[0]: Invalid value: 5: spec.e[0] in body should be less than or equal to 1
Invalid spec.e[1]: Invalid value: 6: spec.e[1] in body should be less than or equal to 1
Invalid spec.e: Invalid value: 2: spec.e in body should have at least 4 items
TooMany spec.e: Too many: 2: must have at most 1 item
NotSupported spec.e: Unsupported value: [5,6]: supported values: "[1]"`,
		`"f":3000000005`: `Invalid <nil>: Invalid value: "": Checked value must be of type integer with format int32 in spec.f
Invalid spec.f: Invalid value: 3000000005: spec.f in body should be a multiple of 7
Invalid spec.f: Invalid value: 3000000005: spec.f in body should be less than or equal to 1
NotSupported spec.f: Unsupported value: 3000000005: supported values: "3"`,
		`"f":5`: `Invalid <nil>: Invalid value: "": "spec.f" must validate at least one schema (anyOf)
Invalid spec.f: Invalid value: 5: spec.f in body should be greater than or equal to 100
Invalid spec.f: Invalid value: 5: spec.f in body should be a multiple of 7
Invalid spec.f: Invalid value: 5: spec.f in body should be greater than or equal to 10
Invalid spec.f: Invalid value: 5: spec.f in body should be less than or equal to 1
NotSupported spec.f: Unsupported value: 5: supported values: "3"`,
		`"g":{"c":5,"a":6,"d":7,"b":8}`: `Invalid spec.g.a: Invalid value: 6: spec.g.a in body should be less than or equal to 1
Invalid spec.g.b: Invalid value: 8: spec.g.b in body should be less than or equal to 1
Invalid spec.g.c: Invalid value: 5: spec.g.c in body should be less than or equal to 1
Invalid spec.g.d: Invalid value: 7: spec.g.d in body should be less than or equal to 1`,
		`"h":{"a":[{"k":"1","s":["b","b","b"]},{"k":"1"},{"k":"1"}],"m":{"kind":"a b","metadata":{"namespace":"A","ownerReferences":[{}]}},"z":[]}`: `Invalid spec.h.z: Invalid value: 0: spec.h.z in body should have at least 7 items
Required spec.r: Required value
Required other: Required value
Required spec.h.m.apiVersion: Required value
Invalid spec.h.m.kind:
Invalid spec.h.m.metadata.namespace:
Required spec.h.m.metadata.ownerReferences[0].apiVersion: Required value: must not be empty
Required spec.h.m.metadata.ownerReferences[0].kind: Required value: must not be empty
Required spec.h.m.metadata.ownerReferences[0].name: Required value: must not be empty
Required spec.h.m.metadata.ownerReferences[0].uid: Required value: must not be empty
Duplicate spec.h.a[1]: Duplicate value: {"k":"1"}
Duplicate spec.h.a[0].s[1]: Duplicate value: "b"`,
	} {
		lines := strings.Split(want, "\n")
		if value[1] != 'h' {
			lines = append(lines, "Required spec.r: Required value", "Required other: Required value")
		}
		got := causeTexts(t, s, `{"spec":{`+value+`}}`)
		require.Len(t, got, len(lines), value)
		for i, line := range lines {
			assert.True(t, got[i] == line || strings.HasSuffix(line, ":") && strings.HasPrefix(got[i], line), "%s: %s, not %s", value, got[i], line)
		}
	}
}

func TestMessagesOfDefinitions(t *testing.T) {
	for _, c := range messages {
		s, faults := OpenAPI(tree(t, fmt.Sprintf(`{"type":"object","properties":{"spec":{"type":"object","properties":{%q:%s}}}}`, c.field, c.schema)), names.Kubernetes, check.At("s"))
		require.Empty(t, faults, c.field)
		for _, text := range strings.Split(strings.TrimPrefix(strings.ReplaceAll(c.values, "\n\t", "\t"), "\n"), "\n") {
			if text == "" {
				continue
			}
			parts := strings.Split(text, "\t")
			assert.Equal(t, parts[1:], causeTexts(t, s, fmt.Sprintf(`{"spec":{%q:%s}}`, c.field, parts[0])), "%s: %s", c.schema, parts[0])
		}
	}
}

// causeTexts returns the causes of an object as text.
func causeTexts(t *testing.T, s *Schema, in string) []string {
	m := tree(t, in)
	_, faults := s.Normalize(m)
	require.Empty(t, faults, in)
	_ = s.FillDefaults(m)
	texts := []string{}
	for _, c := range s.Validate(m, nil) {
		texts = append(texts, strings.TrimPrefix(string(c.Reason), "FieldValue")+" "+c.Field+": "+c.Message)
	}
	return texts
}

// formatted are texts that have a format, and texts that do not.
var formatted = []struct {
	format    string
	good, bad []string
}{
	{"hostname", []string{"example.com", "a.bc", "a", "ab", "EXAMPLE.com", "xn--a.com", "é.com", "a.éé", "a.b.cc", "$", "$.com", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.com", "1", "a.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "€", "é"},
		[]string{"1.2.3.44", "-ab", "ab-", "a--b", "exa_mple.com", "a.co-", "a.-co", "a.c-o", ".com", "a.com.", "a.é", "a b", "a.co$", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.com", "a.bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb", "a..bc", "9.9a", "a.1a", "a1.22", "x?!", "", "a.b", "a_b", "-a", "a..b", "a.", "A.B", "1.2.3.4", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
	{"duration", []string{"1 sec", "2 wk", "x 3 days y", "3 dayz", "1 seconds", "1 S", "1 MS", "5 us", "5 µs", "5 nano", "1 min", "1 minutes", "1 hours", "1 hr", "1 w", "1 week", "1week", "1.5 d", "-1 d", "5 millis", "5 microseconds", "5 nanosecond", "5 milliseconds", "+3h", "3 h 5", "1day", "1,5h", "1h 30m", "2 weekss", "2 hourly", "1h", "1h2m3s", "1 day", "1d", "-1s", "3 weeks", "P1D", "1.5h"},
		[]string{"1 month", "1 mi", "1 hrs", "d", "1", "5 n", "2 daily", "x?!", ""}},
	{"date-time", []string{"2020-01-01T00:00:00,5Z", "2020-01-01t00:00:00.5z", "0000-01-01T00:00:00Z", "2020-01-01T23:59:59-00:00", "2020-01-01T00:00:00.123456789123Z", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00.123+01:00", "2020-01-01T00:00:00z", "2020-01-01t00:00:00Z"},
		[]string{"2020-01-01T24:00:00Z", "2020-01-01T00:00:00.Z", "2020-01-01T00:00:00+0100", "2020-02-30T00:00:00Z", " 2020-01-01T00:00:00Z", "2020-01-01T00:00:00+1:00", "x?!", "", "2020-01-01", "2020-01-01 00:00:00", "2020-13-01T00:00:00Z", "2020-01-01T00:00:60Z", "2020-01-01T00:00:00"}},
	{"date", []string{"0000-01-01", "9999-12-31", "2020-01-01"},
		[]string{"20200101", "2020-01-01 ", "x?!", "", "2020-1-1", "2020-02-30"}},
	{"byte", []string{"YWI=", "YWJj", "YW==", "YQ=="},
		[]string{"YQ=", "Y_==", "Y-8=", "YQ==\n", "=", "====", "YWJjZA", "x?!", "", "YQ", "Y", "!!", "YW\\n=="}},
	{"uri", []string{"http://", "mailto:a@b", "urn:x", "http:///x", "/a b", "x:", "http://a", "/a", "a:b", "//x"},
		[]string{"http://[::1", "?a", "#a", "a/b", "https://a/%zz", "", "1:a", "http://a:b", "x?!", "a", "http://a b"}},
	{"email", []string{"\"a b\"@c", "<a@b>", "A. <a@b>", "a@[1.2.3.4]", "é@b", "a@b", "A <a@b>", "a@b.c"},
		[]string{"a@b c", "a@", "@b", "a@b,c@d", "a..b@c", "x?!", "", "a"}},
	{"ipv4", []string{"001.002.003.004", "::ffff:01.2.3.4", "::1.2.3.4", "1.2.3.4", "01.2.3.4", "::ffff:1.2.3.4"},
		[]string{"1.2.3.4.5", "256.1.1.1", "1.2.3.4 ", "0x1.2.3.4", "1.2.3.4%a", "x?!", "", "1.2.3", "::1"}},
	{"ipv6", []string{"::", "::ffff:1.2.3.4", "ABCD::", "::1"},
		[]string{"1::1%1", "[::1]", "1:2:3:4:5:6:7:8:9", "x?!", "", "1.2.3.4", "fe80::1%eth0", "1::2::3"}},
	{"cidr", []string{"1.2.3.4/024", "::ffff:1.2.3.4/96", "::ffff:01.2.3.4/96", "1.2.3.0/24", "1.2.3.4/24", "::/0", "01.2.3.0/24"},
		[]string{"::/129", "1.2.3.4/ 4", "::1%a/64", "1.2.3.4/-1", "x?!", "", "1.2.3.4", "1.2.3.4/33"}},
	{"mac", []string{"00:00:00:00:fe:80:00:00", "001122334455", "00:11:22:33:44:55", "00-11-22-33-44-55", "0011.2233.4455"},
		[]string{"00112233445566", "00-11:22:33:44:55", "00:11:22:33:44:5g", "x?!", "", "00:11"}},
	{"uuid", []string{"a0eebc999c0b-4ef8-bb6d-6bb9bd380a11", "00000000-0000-0000-0000-000000000000", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11", "A0EEBC999C0B4EF8BB6D6BB9BD380A11"},
		[]string{"{a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11}", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11x", "x?!", "", "a0eebc99"}},
	{"uuid3", []string{"A0EEBC99-9C0B-3EF8-BB6D-6BB9BD380A11", "a0eebc999c0b3ef8bb6d6bb9bd380a11", "a0eebc99-9c0b-3ef8-bb6d-6bb9bd380a11"},
		[]string{"x?!", "", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"}},
	{"uuid4", []string{"A0EEBC99-9C0B-4EF8-BB6D-6BB9BD380A11", "a0eebc999c0b4ef8bb6d6bb9bd380a11", "a0eebc99-9c0b-4ef8-bb6d-6bb9bd380a11"},
		[]string{"x?!", "", "a0eebc99-9c0b-4ef8-cb6d-6bb9bd380a11"}},
	{"uuid5", []string{"A0EEBC99-9C0B-5EF8-BB6D-6BB9BD380A11", "a0eebc999c0b5ef8bb6d6bb9bd380a11", "a0eebc99-9c0b-5ef8-bb6d-6bb9bd380a11"},
		[]string{"x?!", "", "a0eebc99-9c0b-5ef8-1b6d-6bb9bd380a11"}},
	{"hexcolor", []string{"#FFF", "ffffff", "#fff", "fff", "#FFAA00"},
		[]string{"ff", "#ggg", "#ffffff ", "#fffffff", "x?!", "", "#ffff"}},
	{"rgbcolor", []string{"rgb(0,0,0)", "rgb(255,255,255)", "rgb( 1 , 2 , 3 )", "rgb(1,2,3)", "rgb(1, 2, 3)"},
		[]string{"rgb(01,1,1)", "rgb(1,2)", "rgb(1 2 3)", "rgb(1.0,2,3)", "rgb(-1,2,3)", " rgb(1,2,3)", "x?!", "", "rgb(256,1,1)", "rgba(1,2,3)", "rgb(10%,2%,3%)", "RGB(1,2,3)"}},
	{"isbn", []string{"9780306406157", "978 0 306 40615 7", "080442957X", "0-306-40615-2", "978-0-306-40615-7", "0306406152"},
		[]string{"080442957x", "080442957", "x", "97803064061570", "x?!", "", "0306406153"}},
	{"isbn10", []string{"0 306 40615 2", "0-8044-2957-X", "0306406152", "0-306-40615-2", "080442957X"},
		[]string{"080442957x", "03064061522", "x?!", "", "0306406153"}},
	{"isbn13", []string{"9780306406157", "978 0 306 40615 7", "979-10-90636-07-1", "978-0-306-40615-7"},
		[]string{"978030640615X", "x?!", "", "9780306406158"}},
	{"ssn", []string{"000-00-0000", "123 45-6789", "123-45-6789", "123 45 6789"},
		[]string{"123-456789", "12345-6789", "123-45-678", " 123-45-6789", "111-11-1111x", "x?!", "", "123456789"}},
	{"creditcard", []string{"4111 1111 1111 1111", "5500000000000004", "340000000000009", "30000000000004", "6011000000000004", "3530111333300000", "4222222222222", "4111-1111 1111-1111", "4111111111111111", "4111-1111-1111-1111"},
		[]string{"411111111111111", "0000000000000000", "1234567812345670", "6304000000000000", "201400000000009", "2221000000000009", "62123456789002", "x?!", "", "4111111111111112", "1234"}},
	{"bsonobjectid", []string{"507F1F77BCF86CD799439011", "507f1f77bcf86cd799439011"},
		[]string{"507f1f77bcf86cd79943901", "507f1f77bcf86cd7994390111", "507f1f77bcf86cd79943901g", "x?!", "", "507f"}},
	{"k8s-short-name", []string{"1", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx", "a-b", "a"},
		[]string{"a-", "-a", "a_b", "x?!", "", "A", "a.b", "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"}},
	{"k8s-long-name", []string{"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx.a", "a", "a.b"},
		[]string{"a.", ".a", "a-.b", "a.-b", "a_b", "A", "x?!", "", "a..b"}},
	{"password", []string{"", "x?!", "x"},
		nil},
	{"datetime", []string{"2020-01-01t00:00:00z", "2020-01-01T00:00:00Z"},
		[]string{"2020-01-01 00:00:00Z", "x?!", "", "2020-01-01"}},
	{"nonsense", []string{"x?!", ""},
		nil},
}

func TestFormats(t *testing.T) {
	for _, f := range formatted {
		for _, text := range f.good {
			assert.True(t, HasFormat(text, f.format), "%q has the format %s", text, f.format)
		}
		for _, text := range f.bad {
			assert.False(t, HasFormat(text, f.format), "%q has not the format %s", text, f.format)
		}
		s, faults := OpenAPI(tree(t, fmt.Sprintf(`{"type":"object","properties":{"d":{"type":"string","format":%q}}}`, f.format)), names.Kubernetes, check.At("s"))
		require.Empty(t, faults)
		if len(f.bad) > 0 {
			assert.Equal(t, []string{fmt.Sprintf("TypeInvalid d: Invalid value: %q: d in body must be of type %s: %q", f.bad[0], f.format, f.bad[0])}, causeTexts(t, s, fmt.Sprintf(`{"d":%q}`, f.bad[0])))
		}
	}
}

// TestMessagesOfInvalidDefinitions: definitions with an invalid list type, default or
// combination, one cause each.
func TestMessagesOfInvalidDefinitions(t *testing.T) {
	for _, c := range []struct{ schema, want string }{
		{`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}}},"x-kubernetes-list-type":"set"}`, `Invalid f.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`},
		{`{"type":"array","items":{"type":"object","properties":{"a":{"type":"integer"}},"x-kubernetes-map-type":"granular"},"x-kubernetes-list-type":"set"}`, `Invalid f.items.x-kubernetes-map-type: Invalid value: null: must be atomic as item of a list with x-kubernetes-list-type=set`},
		{`{"type":"array","items":{"type":"array","items":{"type":"integer"},"x-kubernetes-list-type":"set"},"x-kubernetes-list-type":"set"}`, `Invalid f.items.x-kubernetes-list-type: Invalid value: "set": must be atomic as item of a list with x-kubernetes-list-type=set`},
		{`{"type":"array","items":{"type":"string","nullable":true},"x-kubernetes-list-type":"set"}`, `Forbidden f.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is set`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map"}`, `Required f.x-kubernetes-list-map-keys: Required value: must not be empty if x-kubernetes-list-type is map`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["z"]}`, `Invalid f.x-kubernetes-list-map-keys: Invalid value: ["z"]: entries must all be names of item properties`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k","k"]}`, `Invalid f.x-kubernetes-list-map-keys: Invalid value: ["k","k"]: must not contain duplicate entries`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"object"}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Invalid f.items.properties[k].type: Invalid value: "object": must be a scalar type if parent array's x-kubernetes-list-type is map`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Required f.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string","nullable":true}},"required":["k"]},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Forbidden f.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string","nullable":true}}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Required f.items.properties[k].default: Required value: this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property
Forbidden f.items.properties[k].nullable: Forbidden: this property is in x-kubernetes-list-map-keys, so it cannot be nullable`},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Invalid f.items.type: Invalid value: "string": must be object if parent array's x-kubernetes-list-type is map`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"nullable":true},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Forbidden f.items.nullable: Forbidden: cannot be nullable when x-kubernetes-list-type is map`},
		{`{"type":"array","items":{"type":"object","x-kubernetes-preserve-unknown-fields":true},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Invalid f.x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties`},
		{`{"type":"array","items":{"type":"object","additionalProperties":{"type":"string"}},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["k"]}`, `Invalid f.x-kubernetes-list-map-keys: Invalid value: ["k"]: entries must all be names of item properties`},
		{`{"type":"array","items":{"type":"object","properties":{"k":{"type":"string"}},"required":["k"]},"x-kubernetes-list-map-keys":["k"]}`, `Required f.x-kubernetes-list-type: Required value: must be map if x-kubernetes-list-map-keys is non-empty`},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"set","x-kubernetes-list-map-keys":["k"]}`, `Invalid f.x-kubernetes-list-type: Invalid value: "set": must be map if x-kubernetes-list-map-keys is non-empty`},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":"odd"}`, `NotSupported f.x-kubernetes-list-type: Unsupported value: "odd": supported values: "atomic", "set", "map"`},
		{`{"type":"object","x-kubernetes-map-type":"odd"}`, `NotSupported f.x-kubernetes-map-type: Unsupported value: "odd": supported values: "atomic", "granular"`},
		{`{"type":"string","x-kubernetes-list-type":"set"}`, `Invalid f.type: Invalid value: "string": must be array if x-kubernetes-list-type is specified`},
		{`{"x-kubernetes-list-type":"set"}`, `Required f.type: Required value: must not be empty for specified object fields
Required f.type: Required value: must be array if x-kubernetes-list-type is specified`},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-list-type":""}`, `NotSupported f.x-kubernetes-list-type: Unsupported value: "": supported values: "atomic", "set", "map"`},
		{`{"type":"array","items":{"type":"string"},"x-kubernetes-map-type":"atomic"}`, `Invalid f.type: Invalid value: "array": must be object if x-kubernetes-map-type is specified`},
		{`{"type":"string","default":1}`, `TypeInvalid f.default: Invalid value: "integer":  in body must be of type string: "integer"`},
		{`{"type":"string","default":"c","enum":["a"]}`, `NotSupported f.default: Unsupported value: "c": supported values: "a"`},
		{`{"type":"string","default":"a","minLength":3}`, `Invalid f.default: Invalid value: "a":  in body should be at least 3 chars long`},
		{`{"type":"string","default":"b","pattern":"^a"}`, `Invalid f.default: Invalid value: "b":  in body should match '^a'`},
		{`{"type":"integer","default":5,"maximum":2}`, `Invalid f.default: Invalid value: 5:  in body should be less than or equal to 2`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"default":{"b":1}}`, `Invalid f.default: Invalid value: {"b":1}: must not have unknown fields`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"default":{"a":1}}`, `TypeInvalid f.default.a: Invalid value: "integer": a in body must be of type string: "integer"`},
		{`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"default":{}}`, `Required f.default.a: Required value`},
		{`{"type":"array","items":{"type":"string"},"default":[1]}`, `TypeInvalid f.default.[0]: Invalid value: "integer": [0] in body must be of type string: "integer"`},
		{`{"type":"array","items":{"type":"string"},"default":["a"],"minItems":2}`, `Invalid f.default: Invalid value: 1:  in body should have at least 2 items`},
		{`{"type":"string","default":"x","format":"date"}`, `TypeInvalid f.default: Invalid value: "x":  in body must be of type date: "x"`},
		{`{"type":"string","default":"b","anyOf":[{"minLength":3}]}`, `Invalid f.default: Invalid value: "": "" must validate at least one schema (anyOf)
Invalid f.default: Invalid value: "b":  in body should be at least 3 chars long`},
		{`{"type":"string","default":"b","not":{"minLength":1}}`, `Invalid f.default: Invalid value: "": "" must not validate the schema (not)`},
		{`{"type":"array","items":{"type":"string","default":1}}`, `TypeInvalid f.items.default: Invalid value: "integer":  in body must be of type string: "integer"`},
		{`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{"type":"string","default":2}}}}}`, `TypeInvalid f.properties[a].properties[b].default: Invalid value: "integer":  in body must be of type string: "integer"`},
		{`{"type":"integer","default":1.5}`, `TypeInvalid f.default: Invalid value: "number":  in body must be of type integer: "number"
Invalid f.default: Invalid value: "": Checked value must be of type integer (default format) in `},
		{`{"x-kubernetes-int-or-string":true,"anyOf":[{"type":"string"},{"type":"integer"}]}`, `Forbidden f.anyOf[0].type: Forbidden: must be empty to be structural
Forbidden f.anyOf[1].type: Forbidden: must be empty to be structural`},
		{`{"type":"string","pattern":"("}`, `Invalid f.pattern: Invalid value: "(": must be a valid regular expression, but isn't: error parsing regexp: missing closing ): ` + "`" + `(` + "`" + ``},
		{`{"type":"string","anyOf":[{"nullable":true}]}`, `Forbidden f.anyOf[0].nullable: Forbidden: must be false to be structural`},
		{`{"type":"string","anyOf":[{"type":"string"}]}`, `Forbidden f.anyOf[0].type: Forbidden: must be empty to be structural`},
	} {
		_, faults := OpenAPI(tree(t, fmt.Sprintf(`{"type":"object","properties":{"f":%s}}`, c.schema)), names.Kubernetes, nil)
		var got []string
		for _, f := range faults {
			got = append(got, strings.TrimPrefix(string(f.Reason), "FieldValue")+" "+strings.Replace(f.Field, "properties[f]", "f", 1)+": "+f.Message)
		}
		assert.ElementsMatch(t, strings.Split(c.want, "\n"), got, c.schema)
	}
}

func TestNullsOfAppliedObjects(t *testing.T) {
	s, faults := OpenAPI(tree(t, `{"type":"object","properties":{"spec":{"type":"object","properties":{
		"s":{"type":"string"},"d":{"type":"string","default":"x"},"n":{"type":"string","nullable":true},"any":{"x-kubernetes-preserve-unknown-fields":true},
		"i":{"x-kubernetes-int-or-string":true},"m":{"type":"object","additionalProperties":{"type":"integer"}},"p":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
		"l":{"type":"array","items":{"type":"object","properties":{"v":{"type":"string"}}}}}}}}`), names.Kubernetes, nil)
	require.Empty(t, faults)
	for in, want := range map[string][]string{
		`{"spec":null}`: {`spec: Invalid value: "null": spec in body must be of type object: "null"`},
		`{"spec":{"d":null,"n":null,"any":null,"p":{"a":null},"l":[{"v":"x"}]}}`: nil,
		`{"spec":{"s":null,"m":{"a":1,"b":null},"l":[{"v":null}],"i":null}}`: {
			`spec.i: Invalid value: "null": spec.i in body must be of type integer,string: "null"`,
			`spec.l[0].v: Invalid value: "null": spec.l[0].v in body must be of type string: "null"`,
			`spec.m.b: Invalid value: "null": spec.m.b in body must be of type integer: "null"`,
			`spec.s: Invalid value: "null": spec.s in body must be of type string: "null"`},
	} {
		var got []string
		obj := tree(t, in)
		require.NoError(t, s.FillDefaultsOfApplied(obj))
		for _, c := range s.Validate(obj, nil) {
			got = append(got, c.Field+": "+c.Message)
		}
		assert.Equal(t, want, got, in)
	}
}
