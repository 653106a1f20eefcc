package meta

import (
	"encoding/json"
	"errors"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Quantity is a fixed-point number with a suffix and a resolution of one billionth (nano).
// ParseQuantity rounds finer values away from zero, and limits values with a binary suffix to
// ±(2^63-1); other values, sums and differences are not limited. The zero value is 0. A
// Quantity is immutable.
type Quantity struct {
	nanos  *big.Int // nil means 0
	format QuantityFormat
}

// QuantityFormat is the set of suffixes that a quantity is written with.
type QuantityFormat uint8

const (
	DecimalSI       QuantityFormat = iota // n, u, m, k, M, G, T, P, E, such as 1500m
	BinarySI                              // Ki, Mi, Gi, Ti, Pi, Ei, such as 512Mi; fractions and values below 1Ki as DecimalSI
	DecimalExponent                       // such as 12e6
)

// Limits on the length of a quantity's text and on its exponent. Without them, a short text
// could stand for a number with so many digits that computing them takes too long.
const (
	maxQuantityText     = 256
	maxQuantityExponent = 100
)

// decimalSuffixes by exponent, from -9 in steps of 3.
var decimalSuffixes = [...]string{"n", "u", "m", "", "k", "M", "G", "T", "P", "E"}

// binarySuffixes by power of 1024.
var binarySuffixes = [...]string{"", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"}

// NewQuantity returns a quantity of n units: 512<<20 in BinarySI is 512Mi.
func NewQuantity(n int64, format QuantityFormat) Quantity {
	return Quantity{new(big.Int).Mul(big.NewInt(n), nano()), format}
}

// NewMilliQuantity returns a quantity of n thousandths: 1500 is 1500m.
func NewMilliQuantity(n int64, format QuantityFormat) Quantity {
	return Quantity{new(big.Int).Mul(big.NewInt(n), milli()), format}
}

// nano and milli return the number of nanos in a unit and in a thousandth.
func nano() *big.Int  { return big.NewInt(1e9) }
func milli() *big.Int { return big.NewInt(1e6) }

// QuantityForm is the error text for a malformed quantity, as in the reference server.
const QuantityForm = `quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'`

// ParseQuantity parses a quantity.
func ParseQuantity(s string) (Quantity, error) {
	bad := func() (Quantity, error) {
		return Quantity{}, errors.New(QuantityForm)
	}
	if len(s) > maxQuantityText {
		return bad()
	}
	number, suffix := splitQuantity(s)
	digits, point, ok := quantityDigits(number)
	if !ok {
		return bad()
	}
	format, exponent, ok := quantitySuffix(suffix)
	if !ok {
		return bad()
	}
	m, ok := new(big.Int).SetString(digits, 10)
	if !ok {
		return bad()
	}
	if format == BinarySI {
		m.Lsh(m, uint(exponent))
		exponent = 0
	}
	n := scaleToNanos(m, exponent-point+9)
	if strings.HasPrefix(number, "-") {
		n.Neg(n)
	}
	if format == BinarySI {
		n = limitNanos(n)
	}
	return Quantity{n, format}, nil
}

// splitQuantity splits a quantity into number and suffix.
func splitQuantity(s string) (number, suffix string) {
	i := 0
	for i < len(s) && (s[i] >= '0' && s[i] <= '9' || s[i] == '.' || i == 0 && (s[i] == '+' || s[i] == '-')) {
		i++
	}
	return s[:i], s[i:]
}

// quantityDigits returns the digits without sign and point, and the number of digits after the
// point.
func quantityDigits(number string) (digits string, point int, ok bool) {
	number = strings.TrimLeft(number, "+-")
	whole, fraction, _ := strings.Cut(number, ".")
	if strings.Contains(fraction, ".") || whole+fraction == "" {
		return "", 0, false
	}
	return whole + fraction, len(fraction), true
}

func quantitySuffix(s string) (f QuantityFormat, exponent int, ok bool) {
	for i, w := range binarySuffixes {
		if s == w && i > 0 {
			return BinarySI, 10 * i, true
		}
	}
	for i, w := range decimalSuffixes {
		if s == w {
			return DecimalSI, 3*i - 9, true
		}
	}
	if len(s) < 2 || s[0] != 'e' && s[0] != 'E' {
		return 0, 0, false
	}
	n, err := strconv.ParseInt(s[1:], 10, 32)
	if err != nil || n > maxQuantityExponent {
		return 0, 0, false
	}
	return DecimalExponent, int(n), true
}

// scaleToNanos returns m times ten to the exponent, rounded up. It may change m.
func scaleToNanos(m *big.Int, exponent int) *big.Int {
	if m.Sign() == 0 {
		return m
	}
	if exponent >= 0 {
		return m.Mul(m, pow10(exponent))
	}
	rest := new(big.Int)
	m.QuoRem(m, pow10(min(-exponent, 2*maxQuantityText)), rest)
	if rest.Sign() != 0 {
		m.Add(m, big.NewInt(1))
	}
	return m
}

func pow10(n int) *big.Int { return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil) }

func limitNanos(n *big.Int) *big.Int {
	most := new(big.Int).Mul(big.NewInt(1<<63-1), nano())
	if n.CmpAbs(most) <= 0 {
		return n
	}
	if n.Sign() < 0 {
		return most.Neg(most)
	}
	return most
}

// String returns the canonical text: a whole number with the largest possible suffix.
func (q Quantity) String() string {
	if q.Sign() == 0 {
		return "0"
	}
	if q.format == BinarySI && q.IsInteger() && q.nanos.CmpAbs(new(big.Int).Mul(big.NewInt(1024), nano())) >= 0 {
		m, power := strip(roundUp(q.nanos, nano()), 1024, len(binarySuffixes)-1)
		return m.String() + binarySuffixes[power]
	}
	most := len(decimalSuffixes) - 1
	if q.format == DecimalExponent {
		most = math.MaxInt
	}
	m, power := strip(new(big.Int).Set(q.nanos), 1000, most)
	if exponent := 3*power - 9; q.format == DecimalExponent {
		if exponent == 0 {
			return m.String()
		}
		return m.String() + "e" + strconv.Itoa(exponent)
	}
	return m.String() + decimalSuffixes[power]
}

// strip divides n by base while the remainder is zero, at most most times. It returns the
// quotient and the number of divisions, and may change n.
func strip(n *big.Int, base int64, most int) (*big.Int, int) {
	b, next, rest := big.NewInt(base), new(big.Int), new(big.Int)
	for power := range most {
		if next.QuoRem(n, b, rest); rest.Sign() != 0 {
			return n, power
		}
		n.Set(next)
	}
	return n, most
}

// roundUp returns nanos divided by unit, rounded away from zero.
func roundUp(nanos, unit *big.Int) *big.Int {
	whole, rest := new(big.Int).QuoRem(nanos, unit, new(big.Int))
	return whole.Add(whole, big.NewInt(int64(rest.Sign())))
}

// saturate returns the int64 nearest to n.
func saturate(n *big.Int) int64 {
	switch {
	case n.IsInt64():
		return n.Int64()
	case n.Sign() < 0:
		return math.MinInt64
	}
	return math.MaxInt64
}

// Sign returns -1, 0 or 1.
func (q Quantity) Sign() int { return q.amount().Sign() }

// Cmp compares two quantities: -1, 0 or 1.
func (q Quantity) Cmp(other Quantity) int { return q.amount().Cmp(other.amount()) }

// Equal reports whether two quantities have the same value.
func (q Quantity) Equal(other Quantity) bool { return q.Cmp(other) == 0 }

// Add returns q+other in the format of q, or in the format of other if q is 0.
func (q Quantity) Add(other Quantity) Quantity {
	return Quantity{new(big.Int).Add(q.amount(), other.amount()), q.form(other)}
}

// Sub returns q-other in the format of q, or in the format of other if q is 0.
func (q Quantity) Sub(other Quantity) Quantity {
	return Quantity{new(big.Int).Sub(q.amount(), other.amount()), q.form(other)}
}

// form returns the format of q, or of other if q is 0.
func (q Quantity) form(other Quantity) QuantityFormat {
	if q.Sign() == 0 {
		return other.format
	}
	return q.format
}

// Value returns the number of units, rounded away from zero: 2 for 1500m. A result outside the
// range of int64 is replaced by the nearest int64; see AsInt64.
func (q Quantity) Value() int64 { return saturate(roundUp(q.amount(), nano())) }

// Rat returns the exact value as a new fraction, for ratios and remainders.
func (q Quantity) Rat() *big.Rat { return new(big.Rat).SetFrac(q.amount(), nano()) }

// AsInt64 returns the number of units. ok is false if the quantity has a fraction or exceeds
// the range of int64.
func (q Quantity) AsInt64() (n int64, ok bool) { return exactly(q.amount(), nano()) }

// AsMilli is AsInt64 for thousandths.
func (q Quantity) AsMilli() (n int64, ok bool) { return exactly(q.amount(), milli()) }

func exactly(nanos, unit *big.Int) (int64, bool) {
	n, rest := new(big.Int).QuoRem(nanos, unit, new(big.Int))
	if rest.Sign() != 0 || !n.IsInt64() {
		return 0, false
	}
	return n.Int64(), true
}

// IsInteger reports whether the quantity is a whole number.
func (q Quantity) IsInteger() bool { return new(big.Int).Rem(q.amount(), nano()).Sign() == 0 }

// IsZero reports whether the quantity is 0.
func (q Quantity) IsZero() bool { return q.Sign() == 0 }

func (q Quantity) amount() *big.Int {
	if q.nanos == nil {
		return new(big.Int)
	}
	return q.nanos
}

// APIForm returns the name of the encoding for package schema.
func (Quantity) APIForm() string { return "quantity" }

// MarshalJSON writes the canonical text.
func (q Quantity) MarshalJSON() ([]byte, error) { return json.Marshal(q.String()) }

// UnmarshalJSON reads a string, a number or null.
func (q *Quantity) UnmarshalJSON(b []byte) (err error) {
	text := string(b)
	if text == "null" {
		*q = Quantity{}
		return nil
	}
	if strings.HasPrefix(text, `"`) {
		if err := json.Unmarshal(b, &text); err != nil {
			return err
		}
	}
	*q, err = ParseQuantity(text)
	return err
}

// CanonicalQuantity returns the canonical text of a quantity.
func CanonicalQuantity(s string) (string, error) {
	if isCanonicalQuantity(s) {
		return s, nil
	}
	q, err := ParseQuantity(s)
	if err != nil {
		return "", err
	}
	return q.String(), nil
}

// isCanonicalQuantity reports whether s is canonical. It is fast, but returns false for some
// canonical quantities.
func isCanonicalQuantity(s string) bool {
	number, suffix := splitQuantity(s)
	if len(number) == 0 || len(number) > 15 || number[0] < '1' || number[0] > '9' {
		return s == "0"
	}
	n, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return false
	}
	switch suffix {
	case "Ki", "Mi", "Gi", "Ti":
		return n%1024 != 0 && n < 1<<20
	case "n", "u", "m", "", "k":
		return n%1000 != 0
	case "M", "G", "T":
		return n%1000 != 0 && n < 1e6
	}
	return false
}
