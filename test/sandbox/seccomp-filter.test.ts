/** The filter as a program: for each call and its arguments, what the kernel would decide. */
import { existsSync, readFileSync } from 'node:fs'
import { describe, expect, test } from 'vitest'
import { compileSeccompFilter } from '../../src/sandbox/seccomp-filter.ts'
import { SYSCALLS, numberOf, type Architecture, type Syscall } from '../../src/sandbox/seccomp-syscalls.ts'

const AUDIT = { x64: 0xc000003e, arm64: 0xc00000b7 }
const HEADERS = { x64: '/usr/include/x86_64-linux-gnu/asm/unistd_64.h', arm64: '/usr/include/asm-generic/unistd.h' }

/** Runs a program of classic BPF, as far as the filter uses it. */
function decide(program: Buffer, call: number, args: readonly number[], audit: number): number {
  const data = Buffer.alloc(64)
  data.writeUInt32LE(call, 0)
  data.writeUInt32LE(audit >>> 0, 4)
  args.forEach((arg, at) => data.writeBigUInt64LE(BigInt(arg), 16 + 8 * at))
  let accumulator = 0
  for (let at = 0; at < program.length / 8; at++) {
    const code = program.readUInt16LE(at * 8)
    const value = program.readUInt32LE(at * 8 + 4)
    if (code === 0x06) return value
    if (code === 0x20) accumulator = data.readUInt32LE(value)
    else {
      const isTrue =
        code === 0x15 ? accumulator === value : code === 0x35 ? accumulator >= value : (accumulator & value) !== 0
      at += program.readUInt8(at * 8 + (isTrue ? 2 : 3))
    }
  }
  throw new Error('the program has no end')
}

describe.each(['x64', 'arm64'] as const)('on %s', (architecture: Architecture) => {
  const program = compileSeccompFilter(architecture)!
  const ask = (name: Syscall, ...args: number[]) => {
    const call = numberOf(name, architecture)
    return call === undefined ? undefined : decide(program, call, args, AUDIT[architecture])
  }
  const ALLOWED = 0x7fff0000
  const failing = (errno: number) => 0x00050000 | errno

  test.runIf(existsSync(HEADERS[architecture]))('the numbers are those of the kernel’s headers', () => {
    const header = readFileSync(HEADERS[architecture], 'utf8')
    for (const name of Object.keys(SYSCALLS) as Syscall[]) {
      const found = new RegExp(`#define __NR(?:3264)?_${name}\\s+(\\d+)`).exec(header)?.[1]
      // Older headers do not know the newest calls.
      if (found !== undefined) expect(numberOf(name, architecture), name).toBe(Number(found))
    }
  })

  test.each<[Syscall, number[], number]>([
    ['keyctl', [0], 1],
    ['fcntl', [3, 1024], 1],
    ['fcntl', [3, 1040], 1],
    ['bpf', [5], 1],
    ['mount', [], 1],
    ['clone3', [], 38],
    ['clone', [0x10000000 | 17], 1],
    ['clone', [0x40000000 | 17], 1],
    ['unshare', [0x10000000], 1],
    ['unshare', [0x80], 1],
    ['chmod', [0, 0o4755], 1],
    ['fchmod', [3, 0o2755], 1],
    ['fchmodat', [3, 0, 0o6755], 1],
    ['fchmodat2', [3, 0, 0o4755], 1],
    ['open', [0, 0o101, 0o4755], 1],
    ['openat', [3, 0, 0o20200002, 0o4755], 1],
    ['openat2', [3, 0, 0, 24], 38],
    ['mknodat', [3, 0, 0o104755], 1],
    ['ioctl', [0, 0x5412], 1],
    ['ioctl', [0, 0x541c], 1],
    // The kernel does not look at the upper half, so nor may the filter.
    ['ioctl', [0, 0x5412 + 2 ** 32], 1],
    ['ptrace', [16, 1], 1],
    ['ptrace', [0x4206, 1], 1],
    ['socket', [40, 1, 0], 97],
    ['socket', [17, 3, 0], 97],
    ['socket', [16, 3, 9], 93],
    ['socketpair', [38, 1, 0], 97],
    ['personality', [0x0400000], 1],
  ])('%s(%j) fails', (name, args, errno) => {
    const decided = ask(name, ...args)
    expect(decided).toBe(numberOf(name, architecture) === undefined ? undefined : failing(errno))
  })

  test.each<[Syscall, number[]]>([
    ['clone', [0x01200011]],
    ['clone', [0x003d0f00]],
    ['unshare', [0x400]],
    ['chmod', [0, 0o1777]],
    ['fchmodat', [3, 0, 0o755]],
    ['open', [0, 0, 0o7777777]],
    ['openat', [3, 0, 0, 0o7777777]],
    ['openat', [3, 0, 0o101, 0o666]],
    ['ioctl', [0, 0x5413]],
    ['ptrace', [0, 0]],
    ['ptrace', [16, 7]],
    ['socket', [1, 1, 0]],
    ['socket', [2, 1, 6]],
    ['socket', [10, 2, 17]],
    ['socket', [16, 3, 0]],
    ['socketpair', [1, 1, 0]],
    ['personality', [0xffffffff]],
    ['personality', [0x40000]],
  ])('%s(%j) goes through', (name, args) => {
    const decided = ask(name, ...args)
    expect(decided).toBe(numberOf(name, architecture) === undefined ? undefined : ALLOWED)
  })

  test('a call of another architecture kills, one of the x32 ABI fails', () => {
    expect(decide(program, 20, [], 0x40000003)).toBe(0x80000000)
    expect(decide(program, 0x40000000 + 39, [], AUDIT[architecture])).toBe(failing(38))
    expect(decide(program, 0, [], AUDIT[architecture])).toBe(ALLOWED)
  })
})

test('there is no filter for an architecture whose calls are not known', () => {
  expect(compileSeccompFilter('riscv64')).toBeUndefined()
})
