"""The cube root and the reciprocal square root: a guess from the bits, then Newton's steps.

Both are several times faster than the divisions and square roots they avoid.
"""

from __future__ import annotations

from lamina.dialects.vendors import arith, ir
from lamina.passes.math.limits import limits_in_512
from lamina.passes.math.terms import Lane, Term, fma
from lamina.passes.math.variants import LANES, call_variant, intrinsic

# The bits of 1 times 4/3 and 3/2, moved so that the worst error of the guess is least.
_CUBE_ROOT_GUESS = 0x553EE978  # of the high word of an f64
_SQUARE_ROOT_GUESS = 0x5F375A86  # of an f32


def cbrt(x: Term) -> Term:
    """The cube root; 0.51 ulp in f32, 0.6 in f64."""
    if x.lane.width == 64:
        return _cbrt_64(x)
    wide = x.resized(64)
    root, _ = _cbrt_of_size(wide.magnitude())
    return root.with_sign_of(wide).resized(32)


def _cbrt_64(x: Term) -> Term:
    size = x.magnitude()
    is_tiny = size < 2.0**-700  # what follows would be denormal
    size = is_tiny.select(size * 2.0**600, size)
    root, inverse = _cbrt_of_size(size)
    # One more step, on the exact error.
    square = root * root
    excess = fma(square, root, -size) + fma(root, root, -square) * root
    refined = fma(excess * (inverse * inverse), -1 / 3, root)
    root = (size < float("inf")).select(refined, size)
    return is_tiny.select(root * 2.0**-200, root).with_sign_of(x)


def _cbrt_of_size(size: Term) -> tuple[Term, Term]:
    """The cube root of a size to 2^-50, and one over it."""
    high_word = size.bits().logical_right(32).resized(32)
    guess = _CUBE_ROOT_GUESS - (high_word // 3)
    inverse = (guess.resized(64) << 32).as_float()
    for _ in range(2):
        error = fma((size * inverse) * -inverse, inverse, 1.0)
        step = fma(fma(error, 14 / 81, 2 / 9), error, 1 / 3) * error
        inverse = fma(inverse, step, inverse)
    root = (size * inverse) * inverse
    return (size < float("inf")).select(root, size), inverse


def rsqrt(x: Term) -> Term:
    """One over the square root of an f32; 0.6 ulp. Denormals count as zero."""
    inverse = (_SQUARE_ROOT_GUESS - x.bits().logical_right(1)).as_float()
    inverse = _rsqrt_step(x, inverse, exactly=False)
    return _rsqrt_limits(x, _rsqrt_step(x, inverse, exactly=True))


def rsqrt_in_512(x: Term) -> Term:
    """The same where AVX-512 guesses fourteen bits, in one step."""
    if x.lane.shape is not None and x.lane.shape[0] > LANES:
        return rsqrt(x)
    inverse = _rsqrt_step(x, call_variant("rsqrt_guess", _guess_one, _guess, x), exactly=True)
    return limits_in_512("rsqrt", _rsqrt_limits, 0x03830622, x, inverse)


def _guess(x: Term) -> Term:
    everywhere = arith.constant(ir.IntegerType.get_signless(LANES), -1)
    nothing = x.lane.constant(0.0, "float").value
    return intrinsic("llvm.x86.avx512.rsqrt14.ps.512", x.lane, x.value, nothing, everywhere)


def _guess_one(x: Term) -> Term:
    """The same for one number, or fewer than a register has."""
    lane = Lane.make(32, (LANES,))
    if x.lane.shape is not None:
        count = x.lane.shape[0]
        many = _picked(x.value, lane, [min(number, count - 1) for number in range(LANES)])
        return Term.of(_picked(_guess(Term.of(many)).value, x.lane, list(range(count))))
    first = x.lane.constant(0, "int").value
    none = lane.constant(0.0, "float").value
    operands = [none, x.value, first]
    many = ir.Operation.create("llvm.insertelement", [lane.float], operands).result
    operands = [_guess(Term.of(many)).value, first]
    return Term.of(ir.Operation.create("llvm.extractelement", [x.lane.float], operands).result)


def _picked(value: ir.Value, to: Lane, picks: list[int]) -> ir.Value:
    attributes = {"mask": ir.DenseI32ArrayAttr.get(picks)}
    return ir.Operation.create(
        "llvm.shufflevector", [to.float], [value, value], attributes
    ).result


def _rsqrt_limits(x: Term, inverse: Term) -> Term:
    inverse = (x < float("inf")).select(inverse, 0.0)
    inverse = (x >= 2.0**-126).select(inverse, float("nan"))
    at_zero = x.like(float("inf")).with_sign_of(x)
    return (x.magnitude() < 2.0**-126).select(at_zero, inverse)


def _rsqrt_step(x: Term, inverse: Term, exactly: bool) -> Term:
    """A step of third order; `exactly` keeps what the product of x and the guess rounds away."""
    product = x * inverse
    error = fma(-product, inverse, 1.0)
    if exactly:
        error = fma(-fma(x, inverse, -product), inverse, error)
    return fma(inverse, fma(error, 0.375, 0.5) * error, inverse)
