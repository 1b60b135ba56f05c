/**
 * Compiles the rules to the program (classic BPF, seccomp(2)) that the kernel runs for every system call in the
 * sandbox. Kernels from 5.11 on remember which calls the program allows with any arguments, and skip it for them.
 */
import { RULES, type Condition, type Rule } from './seccomp-rules.ts'
import { numberOf, type Architecture } from './seccomp-syscalls.ts'

/** `whenTrue` and `whenFalse`: instructions to skip. */
type Instruction = {
  readonly code: number
  readonly value: number
  readonly whenTrue?: number
  readonly whenFalse?: number
}

const LOAD_WORD = 0x20
const JUMP_IF_EQUAL = 0x15
const JUMP_IF_AT_LEAST = 0x35
const JUMP_IF_ANY_BIT = 0x45
const RETURN = 0x06

/** Offsets in `struct seccomp_data`. The lower half of an argument comes first on both architectures. */
const CALL_OFFSET = 0
const ARCHITECTURE_OFFSET = 4
const ARGUMENTS_OFFSET = 16

const KILL_PROCESS = 0x80000000
const FAIL = 0x00050000
const ALLOW = 0x7fff0000

/** AUDIT_ARCH_X86_64, AUDIT_ARCH_AARCH64. */
const AUDIT: Readonly<Record<Architecture, number>> = { x64: 0xc000003e, arm64: 0xc00000b7 }
/** Calls of the x32 ABI have this bit, and another meaning. */
const X32_BIT = 0x40000000
const ENOSYS = 38

/** Returns undefined for an architecture whose system calls are not known here. */
export function compileSeccompFilter(architecture: string): Buffer | undefined {
  if (architecture !== 'x64' && architecture !== 'arm64') return undefined
  return encode([
    // A 32-bit program has different numbers for all calls.
    { code: LOAD_WORD, value: ARCHITECTURE_OFFSET },
    { code: JUMP_IF_EQUAL, value: AUDIT[architecture], whenTrue: 1 },
    { code: RETURN, value: KILL_PROCESS },
    { code: LOAD_WORD, value: CALL_OFFSET },
    { code: JUMP_IF_AT_LEAST, value: X32_BIT, whenFalse: 1 },
    fail(ENOSYS),
    ...rulesByCall(architecture).flatMap(([call, rules]) => compileCall(call, rules)),
    { code: RETURN, value: ALLOW },
  ])
}

/** A call may have several rules; the first that matches applies. */
function rulesByCall(architecture: Architecture): [number, Rule[]][] {
  const byCall = new Map<number, Rule[]>()
  for (const rule of RULES) {
    for (const name of rule.calls) {
      const call = numberOf(name, architecture)
      if (call !== undefined) byCall.set(call, [...(byCall.get(call) ?? []), rule])
    }
  }
  return [...byCall]
}

function compileCall(call: number, rules: readonly Rule[]): Instruction[] {
  const body = [...rules.flatMap(compileRule), { code: RETURN, value: ALLOW }]
  return [{ code: JUMP_IF_EQUAL, value: call, whenFalse: body.length }, ...body]
}

/** Jumps past the rule as soon as one of its conditions is false. */
function compileRule({ when = [], errno }: Rule): Instruction[] {
  return when.reduceRight<Instruction[]>(
    (rest, condition) => [...compileCondition(condition, rest.length), ...rest],
    [fail(errno)],
  )
}

/** Continues directly after it if it is true, and `skip` instructions later otherwise. */
function compileCondition(condition: Condition, skip: number): Instruction[] {
  const load = { code: LOAD_WORD, value: ARGUMENTS_OFFSET + 8 * condition.argument }
  if ('hasAnyOf' in condition) return [load, { code: JUMP_IF_ANY_BIT, value: condition.hasAnyOf, whenFalse: skip }]
  if ('isNoneOf' in condition) {
    const values = condition.isNoneOf
    return [
      load,
      ...values.map((value, at) => ({ code: JUMP_IF_EQUAL, value, whenTrue: values.length - 1 - at + skip })),
    ]
  }
  const values = condition.isOneOf
  return [
    load,
    ...values.map((value, at) => {
      const remainingCount = values.length - 1 - at
      return { code: JUMP_IF_EQUAL, value, whenTrue: remainingCount, ...(remainingCount === 0 && { whenFalse: skip }) }
    }),
  ]
}

const fail = (errno: number): Instruction => ({ code: RETURN, value: FAIL | errno })

/** Encodes an array of `struct sock_filter`, for little-endian machines. */
function encode(program: readonly Instruction[]): Buffer {
  const bytes = Buffer.alloc(program.length * 8)
  for (const [at, { code, value, whenTrue = 0, whenFalse = 0 }] of program.entries()) {
    bytes.writeUInt16LE(code, at * 8)
    bytes.writeUInt8(whenTrue, at * 8 + 2)
    bytes.writeUInt8(whenFalse, at * 8 + 3)
    bytes.writeUInt32LE(value >>> 0, at * 8 + 4)
  }
  return bytes
}
