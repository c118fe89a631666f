// Comes before Verilator's writer of FST files. Its checks end the process, most of them where a disk is full; without
// them it writes what it can, and fst.py sees that the file isn't whole.
#pragma once

#if __has_include("fstcpp/fstcpp_assertion.h")
#include "fstcpp/fstcpp_assertion.h"
#undef FST_CHECK
#undef FST_CHECK_EQ
#undef FST_CHECK_NE
#undef FST_CHECK_GT
#undef FST_CHECK_GE
#undef FST_CHECK_LT
#undef FST_CHECK_LE
#define FST_CHECK(a) (void)(a)
#define FST_CHECK_EQ(a, b) (void)(a), (void)(b)
#define FST_CHECK_NE(a, b) (void)(a), (void)(b)
#define FST_CHECK_GT(a, b) (void)(a), (void)(b)
#define FST_CHECK_GE(a, b) (void)(a), (void)(b)
#define FST_CHECK_LT(a, b) (void)(a), (void)(b)
#define FST_CHECK_LE(a, b) (void)(a), (void)(b)
#endif
