// conversions.cpp -- small floats as compiler runtimes pass them: in the low bits of the register
// that a float would be in.
#include "cpu/conversions.h"

#include <bit>
#include <cmath>
#include <cstdint>

#include "cpu/half.h"

namespace lamina {
namespace {

float in_register(uint16_t code) { return std::bit_cast<float>(uint32_t{code}); }

float half_as_float(float held) {
  return half_to_float(static_cast<uint16_t>(std::bit_cast<uint32_t>(held)));
}

float float_as_half(float value) { return in_register(float_to_half(value)); }

float float_as_bfloat16(float value) { return in_register(float_to_bfloat16(value)); }

// The float next to a double in the direction of zero, its last bit set if it is another number:
// rounding that once more gives what rounding the double would have given.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (value != value || nearest == value) return nearest;
  const bool is_beyond = std::fabs(static_cast<double>(nearest)) > std::fabs(value);
  return std::bit_cast<float>((std::bit_cast<uint32_t>(nearest) - uint32_t{is_beyond}) | 1);
}

float double_as_half(double value) { return float_as_half(rounded_to_odd(value)); }

float double_as_bfloat16(double value) { return float_as_bfloat16(rounded_to_odd(value)); }

}  // namespace

std::vector<std::pair<std::string, void*>> conversion_symbols() {
  return {
      {"__extendhfsf2", reinterpret_cast<void*>(&half_as_float)},
      {"__truncsfhf2", reinterpret_cast<void*>(&float_as_half)},
      {"__truncdfhf2", reinterpret_cast<void*>(&double_as_half)},
      {"__truncsfbf2", reinterpret_cast<void*>(&float_as_bfloat16)},
      {"__truncdfbf2", reinterpret_cast<void*>(&double_as_bfloat16)},
  };
}

}  // namespace lamina
