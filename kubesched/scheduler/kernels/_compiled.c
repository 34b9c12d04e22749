/* The formulas of numpy_form.py, each as one loop over all nodes instead of a pass of NumPy for every operation.

In: columns, as buffers of C-contiguous 64-bit numbers or bytes, and a buffer of the same length for the answer. Out: the answer,
or False where numpy_form has none, or is to be asked because there are too many terms. Every operation is that of the NumPy
form, in the same order and with the same rounding: the compiler must not contract a product and a sum (-ffp-contract=off), or the last bit would differ.

Only the stable ABI of Python 3.11 is used, so one file serves all later releases. For x86-64 this file is compiled once
for each level of the processor, and _levels.c takes the best that the machine has.
*/

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdint.h>
#include <string.h>

enum { MOST_TERMS = 16, BLOCK = 512 };

/* Arguments */

/* Borrow an argument's memory: `count` elements of a kind (i: 64-bit integers, d: doubles, b: truth values), or any number
   where it is negative. */
static int
borrow(PyObject *argument, char kind, Py_ssize_t count, int writable, Py_buffer *view)
{
    if (PyObject_GetBuffer(argument, view, PyBUF_C_CONTIGUOUS | PyBUF_FORMAT | (writable ? PyBUF_WRITABLE : 0)) < 0)
        return -1;
    const char *format = view->format != NULL ? view->format : "B";
    const Py_ssize_t size = kind == 'b' ? 1 : 8;
    const char *allowed = kind == 'i' ? "lq" : kind == 'd' ? "d" : "?";
    if (view->itemsize != size || format[0] == '\0' || strchr(allowed, format[0]) == NULL || format[1] != '\0' ||
        (count >= 0 && view->len != count * size)) {
        PyErr_Format(PyExc_TypeError, "a column of %zd elements of kind %c is wanted, not of %zd bytes of %s", count, kind,
                     view->len, format);
        PyBuffer_Release(view);
        return -1;
    }
    return 0;
}

static int
expect(Py_ssize_t found, Py_ssize_t wanted)
{
    if (found == wanted)
        return 0;
    PyErr_Format(PyExc_TypeError, "%zd arguments are wanted, not %zd", wanted, found);
    return -1;
}

/* Several columns that are held until the call ends. */
typedef struct {
    Py_buffer views[3 * MOST_TERMS + 3];
    int n;
} Held;

static void *
hold(Held *held, PyObject *argument, char kind, Py_ssize_t count, int writable)
{
    if (borrow(argument, kind, count, writable, &held->views[held->n]) < 0)
        return NULL;
    return held->views[held->n++].buf;
}

static Py_ssize_t
last_count(const Held *held)
{
    const Py_buffer *view = &held->views[held->n - 1];
    return view->len / view->itemsize;
}

static PyObject *
let_go(Held *held, PyObject *answer)
{
    for (int i = 0; i < held->n; i++)
        PyBuffer_Release(&held->views[i]);
    return answer;
}

/* Scores of resources */

/* What a node offers of a resource lies above zero and below EXACT, and what is used of it from zero to below LARGEST: then no sum
   overflows, and a hundred times a part of the offer is exact as a double. */
#define EXACT ((uint64_t)1 << 46)
#define LARGEST ((uint64_t)1 << 62)

typedef struct {
    const int64_t *offered, *used;
    int64_t more;  /* what the pod adds */
    double weight;
} Usage;

/* Return a number of which the sign says whether an offer or a usage is out of the ordinary. */
static inline int64_t
oddity(int64_t offered, int64_t used)
{
    const uint64_t o = (uint64_t)offered, u = (uint64_t)used;
    return (int64_t)((o - 1) | (EXACT - 1 - o) | u | (LARGEST - 1 - u));
}

/* Return a sum that wraps, as columns do. */
static inline int64_t
plus(int64_t one, int64_t other)
{
    return (int64_t)((uint64_t)one + (uint64_t)other);
}

static inline int64_t
lower(int64_t one, int64_t other)
{
    return one < other ? one : other;
}

/* Return a number from zero to below 2**52 as a double, by its bits: before AVX-512 there is no vector instruction for it. */
static inline double
as_double(int64_t number)
{
    const int64_t bits = number | 0x4330000000000000;
    double shifted;
    memcpy(&shifted, &bits, sizeof shifted);
    return shifted - 4503599627370496.0;
}

/* Return whether all that the pod adds is in the ordinary range; -1 where something is no usage. */
static int
read_usages(PyObject *terms, Py_ssize_t n, Usage *usages, Held *held)
{
    int is_usual = 1, overflow;
    for (Py_ssize_t k = 0; k < PyTuple_Size(terms); k++) {
        PyObject *offered, *used, *more;
        if (!PyArg_ParseTuple(PyTuple_GetItem(terms, k), "OOOd", &offered, &used, &more, &usages[k].weight))
            return -1;
        usages[k].more = PyLong_AsLongLongAndOverflow(more, &overflow);
        if (PyErr_Occurred())
            return -1;
        is_usual &= !overflow && (uint64_t)usages[k].more < LARGEST;
        if ((usages[k].offered = hold(held, offered, 'i', n, 0)) == NULL ||
            (usages[k].used = hold(held, used, 'i', n, 0)) == NULL)
            return -1;
    }
    return is_usual;
}

static int
percent_rows(const Usage *usages, Py_ssize_t n_usages, int spreads, double weight_sum, Py_ssize_t n, int64_t *out)
{
    int64_t odd = 0;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        const Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        double total[BLOCK] = {0.0};
        for (Py_ssize_t k = 0; k < n_usages; k++) {
            const int64_t *offered = usages[k].offered + start, *used = usages[k].used + start, more = usages[k].more;
            const double weight = usages[k].weight;
            for (Py_ssize_t i = 0; i < size; i++) {
                odd |= oddity(offered[i], used[i]);
                const int64_t full = lower(plus(used[i], more), offered[i]);
                const double part = as_double(spreads ? plus(offered[i], -full) : full);
                total[i] += (double)(int32_t)(part * 100.0 / as_double(offered[i])) * weight;
            }
        }
        for (Py_ssize_t i = 0; i < size; i++)
            out[start + i] = (int32_t)(total[i] / weight_sum);  /* exact: both are whole numbers and small */
    }
    return odd >= 0;
}

static PyObject *
allocation_percent(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    Usage usages[MOST_TERMS];
    if (expect(n_args, 3) < 0)
        return NULL;
    const Py_ssize_t n_usages = PyTuple_Size(args[0]);
    if (n_usages < 0 || n_usages > MOST_TERMS)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int64_t *out = hold(&held, args[2], 'i', -1, 1);
    if (out == NULL)
        return NULL;
    const Py_ssize_t n = last_count(&held);
    int is_usual = read_usages(args[0], n, usages, &held);
    if (is_usual < 0)
        return let_go(&held, NULL);
    double weight_sum = 0.0;
    for (Py_ssize_t k = 0; k < n_usages; k++)
        weight_sum += usages[k].weight;
    is_usual = is_usual && percent_rows(usages, n_usages, args[1] == Py_True, weight_sum, n, out);
    return let_go(&held, Py_NewRef(is_usual ? Py_True : Py_False));
}

/* Return (1 - abs((one - other) / 2)) * 100, to the last bit. */
static inline int64_t
balance(double one, double other)
{
    const double apart = one - other;
    return (int32_t)((2.0 - (apart < 0.0 ? -apart : apart)) * 50.0);
}

static int
balance_rows(const Usage *one, const Usage *other, Py_ssize_t n, int64_t *out)
{
    const int64_t *offers_one = one->offered, *uses_one = one->used, more_of_one = one->more;
    const int64_t *offers_other = other->offered, *uses_other = other->used, more_of_other = other->more;
    int64_t odd_one = 0, odd_other = 0;  /* clang does several rows at a time only if these are two */
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t a = offers_one[i], b = offers_other[i];
        odd_one |= oddity(a, uses_one[i]);
        odd_other |= oddity(b, uses_other[i]);
        const double whole_a = as_double(a), whole_b = as_double(b);
        const int64_t before = balance(as_double(lower(uses_one[i], a)) / whole_a, as_double(lower(uses_other[i], b)) / whole_b);
        const int64_t after = balance(as_double(lower(plus(uses_one[i], more_of_one), a)) / whole_a,
                                      as_double(lower(plus(uses_other[i], more_of_other), b)) / whole_b);
        out[i] = (150 - before + after) >> 1;
    }
    return (odd_one | odd_other) >= 0;
}

static PyObject *
balance_scores(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    Usage usages[2];
    if (expect(n_args, 2) < 0)
        return NULL;
    if (PyTuple_Size(args[0]) != 2)
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int64_t *out = hold(&held, args[1], 'i', -1, 1);
    if (out == NULL)
        return NULL;
    const Py_ssize_t n = last_count(&held);
    int is_usual = read_usages(args[0], n, usages, &held);
    if (is_usual < 0)
        return let_go(&held, NULL);
    is_usual = is_usual && balance_rows(&usages[0], &usages[1], n, out);
    return let_go(&held, Py_NewRef(is_usual ? Py_True : Py_False));
}

static int64_t
lowest_difference_of(const int64_t *from, const int64_t *taken, Py_ssize_t n)
{
    int64_t lowest = INT64_MAX;
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t left = (int64_t)((uint64_t)from[i] - (uint64_t)taken[i]);  /* wraps, as columns do */
        lowest = left < lowest ? left : lowest;
    }
    return lowest;
}

static PyObject *
lowest_difference(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    if (expect(n_args, 2) < 0)
        return NULL;
    const int64_t *from = hold(&held, args[0], 'i', -1, 0);
    const int64_t *taken = from == NULL ? NULL : hold(&held, args[1], 'i', last_count(&held), 0);
    if (taken == NULL)
        return let_go(&held, NULL);
    return let_go(&held, PyLong_FromLongLong(lowest_difference_of(from, taken, last_count(&held))));
}

/* Scores of domains */

typedef struct {
    const double *counts;
    const int64_t *codes;  /* -1 where a node lacks the label; NULL where every row is a domain of its own */
    const uint8_t *lacking;  /* NULL where no row lacks the label */
    int64_t last;  /* the number of the last count, which is that of nodes that lack the label */
    double weight, offset;
} Spread;

#define BEYOND_THE_TABLE "a node is in a domain beyond the table"

/* Find the counts of a block of rows' domains; return a number of which the sign says whether one is beyond the table: such a row
   reads the last count, and the caller throws the answer away. */
static int64_t
look_up(const Spread *spread, Py_ssize_t start, Py_ssize_t size, double *found)
{
    const double *counts = spread->counts;
    const int64_t *codes = spread->codes + start, last = spread->last;
    int64_t beyond = 0;
    for (Py_ssize_t i = 0; i < size; i++) {
        const int64_t code = codes[i];
        found[i] = counts[(uint64_t)code < (uint64_t)last ? code : last];
        beyond |= (int64_t)((uint64_t)last - (uint64_t)code);
    }
    return beyond;
}

static void
add_worth(const double *counts, const uint8_t *lacking, double weight, double offset, Py_ssize_t size, double *total)
{
    if (lacking == NULL)
        for (Py_ssize_t i = 0; i < size; i++)
            total[i] += counts[i] * weight + offset;
    else
        for (Py_ssize_t i = 0; i < size; i++)
            total[i] += lacking[i] ? 0.0 : counts[i] * weight + offset;
}

static void
round_rows(const double *total, Py_ssize_t size, int64_t *out)
{
    const double almost_half = 0.49999999999999994;
    for (Py_ssize_t i = 0; i < size; i++)
        out[i] = (int64_t)(total[i] + almost_half);
}

/* Read spread constraints; return how many, more than MOST_TERMS if there is no room for all, -1 where something is none. */
static Py_ssize_t
read_spreads(PyObject *terms, Py_ssize_t n, Spread *spreads, Held *held)
{
    const Py_ssize_t n_terms = PyTuple_Size(terms);
    for (Py_ssize_t k = 0; n_terms <= MOST_TERMS && k < n_terms; k++) {
        Spread *spread = &spreads[k];
        PyObject *counts, *codes, *lacking;
        if (!PyArg_ParseTuple(PyTuple_GetItem(terms, k), "OOOdd", &counts, &codes, &lacking, &spread->weight, &spread->offset))
            return -1;
        spread->codes = NULL;
        spread->lacking = NULL;
        spread->counts = hold(held, counts, 'd', -1, 0);
        if (spread->counts == NULL)
            return -1;
        spread->last = last_count(held) - 1;
        if (codes == Py_None ? spread->last + 1 < n : spread->last < 0) {
            PyErr_SetString(codes == Py_None ? PyExc_TypeError : PyExc_IndexError, "there are fewer counts than rows or domains");
            return -1;
        }
        if ((codes != Py_None && (spread->codes = hold(held, codes, 'i', n, 0)) == NULL) ||
            (lacking != Py_None && (spread->lacking = hold(held, lacking, 'b', n, 0)) == NULL))
            return -1;
    }
    return n_terms;
}

/* Work out what all rows are worth; -1 where a row is in a domain beyond a table. */
static int
worth_rows(const Spread *spreads, Py_ssize_t n_terms, Py_ssize_t n, int64_t *out)
{
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        const Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        double total[BLOCK] = {0.0}, found[BLOCK];
        for (Py_ssize_t k = 0; k < n_terms; k++) {
            const Spread *spread = &spreads[k];
            if (spread->codes != NULL && look_up(spread, start, size, found) < 0) {
                PyErr_SetString(PyExc_IndexError, BEYOND_THE_TABLE);
                return -1;
            }
            add_worth(spread->codes != NULL ? found : spread->counts + start,
                      spread->lacking != NULL ? spread->lacking + start : NULL, spread->weight, spread->offset, size, total);
        }
        round_rows(total, size, out + start);
    }
    return 0;
}

/* Return whole percents of what is between the ends; exact: whole numbers, far below 2**53. */
static inline int64_t
percent_of_ends(double ends, int64_t score, double high)
{
    return (int64_t)(100.0 * (ends - (double)score) / high);
}

/* Refuse the rows of domains whose bits are not zero, and count the rows whose total is zero or more then. The sign of `beyond`
   says whether a row is in a domain beyond the table. */
static int64_t
refuse_rows(const int64_t *totals, const int64_t *bits, const int64_t *codes, int64_t last, int64_t refused, Py_ssize_t n,
            int64_t *out, int64_t *beyond)
{
    int64_t feasible = 0, outside = 0;
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t code = codes[i];
        const int64_t total = bits[(uint64_t)code < (uint64_t)last ? code : last] != 0 ? refused : totals[i];
        out[i] = total;
        feasible += total >= 0;
        outside |= (int64_t)((uint64_t)last - (uint64_t)code);
    }
    *beyond = outside;
    return feasible;
}

static PyObject *
refuse_domains(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    if (expect(n_args, 5) < 0)
        return NULL;
    const long long refused = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    const int64_t *bits = hold(&held, args[1], 'i', -1, 0);
    const int64_t last = bits == NULL ? 0 : last_count(&held) - 1;
    int64_t beyond = -1, feasible = 0, *out = bits == NULL ? NULL : hold(&held, args[4], 'i', -1, 1);
    const Py_ssize_t n = out == NULL ? 0 : last_count(&held);
    const int64_t *totals = out == NULL ? NULL : hold(&held, args[0], 'i', n, 0);
    const int64_t *codes = totals == NULL ? NULL : hold(&held, args[2], 'i', n, 0);
    if (codes == NULL)
        return let_go(&held, NULL);
    if (last >= 0)
        feasible = refuse_rows(totals, bits, codes, last, refused, n, out, &beyond);
    if (beyond < 0) {
        PyErr_SetString(PyExc_IndexError, BEYOND_THE_TABLE);
        return let_go(&held, NULL);
    }
    return let_go(&held, PyLong_FromLongLong(feasible));
}

/* Columns of scores */

static void
find_ends(const int64_t *column, const uint8_t *counted, Py_ssize_t n, int64_t *ends)
{
    int64_t low = INT64_MAX, high = INT64_MIN;
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        const Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        const int64_t *here = column + start;
        int64_t keep[BLOCK];  /* a truth value as wide as a number: the two are not unpacked in one loop */
        for (Py_ssize_t i = 0; i < size; i++)
            keep[i] = -(int64_t)counted[start + i];
        for (Py_ssize_t i = 0; i < size; i++) {
            const int64_t below = (here[i] & keep[i]) | (INT64_MAX & ~keep[i]);
            const int64_t above = (here[i] & keep[i]) | (INT64_MIN & ~keep[i]);
            low = below < low ? below : low;
            high = above > high ? above : high;
        }
    }
    ends[0] = low;
    ends[1] = high;
}

static void
add_scaled(const int64_t *base, const uint8_t *counted, double ends, double high, int64_t weight, Py_ssize_t n, int64_t *out)
{
    for (Py_ssize_t i = 0; i < n; i++) {
        const int64_t score = percent_of_ends(ends, out[i], high);
        out[i] = plus(base[i], counted[i] ? score * weight : 0);
    }
}

static void
add_most(const int64_t *base, const uint8_t *counted, int64_t weight, Py_ssize_t n, int64_t *out)
{
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = plus(base[i], counted[i] ? 100 * weight : 0);
}

static PyObject *
add_spread_scores(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    Spread spreads[MOST_TERMS];
    int64_t ends[2];
    if (expect(n_args, 5) < 0)
        return NULL;
    const long long weight = PyLong_AsLongLong(args[3]);
    if (PyErr_Occurred())
        return NULL;
    int64_t *out = hold(&held, args[4], 'i', -1, 1);
    if (out == NULL)
        return NULL;
    const Py_ssize_t n = last_count(&held);
    const int64_t *base = hold(&held, args[0], 'i', n, 0);
    const uint8_t *counted = base == NULL ? NULL : hold(&held, args[2], 'b', n, 0);
    const Py_ssize_t n_terms = counted == NULL ? -1 : read_spreads(args[1], n, spreads, &held);
    if (n_terms > MOST_TERMS)
        return let_go(&held, Py_NewRef(Py_False));
    if (n_terms < 0 || worth_rows(spreads, n_terms, n, out) < 0)
        return let_go(&held, NULL);
    find_ends(out, counted, n, ends);
    if (ends[1] > 0)
        add_scaled(base, counted, (double)ends[0] + (double)ends[1], (double)ends[1], weight, n, out);
    else
        add_most(base, counted, weight, n, out);
    return let_go(&held, Py_NewRef(Py_True));
}

static void
add_column(const int64_t *column, int64_t weight, Py_ssize_t n, int64_t *out)
{
    for (Py_ssize_t i = 0; i < n; i++)
        out[i] = plus(out[i], (int64_t)((uint64_t)column[i] * (uint64_t)weight));
}

static PyObject *
weighted_total(PyObject *module, PyObject *const *args, Py_ssize_t n_args)
{
    Held held = {.n = 0};
    const int64_t *columns[MOST_TERMS];
    long long weights[MOST_TERMS];
    if (expect(n_args, 3) < 0)
        return NULL;
    const Py_ssize_t n_terms = PyTuple_Size(args[0]);
    const long long base = PyLong_AsLongLong(args[1]);
    if (n_terms < 0 || n_terms > MOST_TERMS || PyErr_Occurred())
        return PyErr_Occurred() ? NULL : Py_NewRef(Py_False);
    int64_t *out = hold(&held, args[2], 'i', -1, 1);
    if (out == NULL)
        return NULL;
    const Py_ssize_t n = last_count(&held);
    for (Py_ssize_t k = 0; k < n_terms; k++) {
        PyObject *column;
        if (!PyArg_ParseTuple(PyTuple_GetItem(args[0], k), "OL", &column, &weights[k]) ||
            (columns[k] = hold(&held, column, 'i', n, 0)) == NULL)
            return let_go(&held, NULL);
    }
    for (Py_ssize_t start = 0; start < n; start += BLOCK) {
        const Py_ssize_t size = n - start < BLOCK ? n - start : BLOCK;
        for (Py_ssize_t i = 0; i < size; i++)
            out[start + i] = base;
        for (Py_ssize_t k = 0; k < n_terms; k++)
            add_column(columns[k] + start, weights[k], size, out + start);
    }
    return let_go(&held, Py_NewRef(Py_True));
}

/* The module */

static PyMethodDef functions[] = {
    {"allocation_percent", (PyCFunction)(void (*)(void))allocation_percent, METH_FASTCALL, NULL},
    {"balance_scores", (PyCFunction)(void (*)(void))balance_scores, METH_FASTCALL, NULL},
    {"lowest_difference", (PyCFunction)(void (*)(void))lowest_difference, METH_FASTCALL, NULL},
    {"refuse_domains", (PyCFunction)(void (*)(void))refuse_domains, METH_FASTCALL, NULL},
    {"add_spread_scores", (PyCFunction)(void (*)(void))add_spread_scores, METH_FASTCALL, NULL},
    {"weighted_total", (PyCFunction)(void (*)(void))weighted_total, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef module = {PyModuleDef_HEAD_INIT, "_compiled", NULL, 0, functions, NULL, NULL, NULL, NULL};

PyMODINIT_FUNC
PyInit__compiled(void)
{
    return PyModuleDef_Init(&module);
}
