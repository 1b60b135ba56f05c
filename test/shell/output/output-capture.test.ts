import { readFile, readdir, stat, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { isDraftName } from '../../../src/lib/durable-file.ts'
import { openShells } from '../shell-fixture.ts'

const MiB = 1024 * 1024

describe('output', () => {
  test('may be any bytes: NUL stays, what is no UTF-8 becomes U+FFFD', async () => {
    const { run } = await openShells()
    expect((await run(String.raw`printf 'a\0b\xff\xfec'`)).stdout).toBe('a\0b��c')
  })

  test('keeps characters that come in pieces whole', async () => {
    const { run } = await openShells()
    const shown: string[] = []
    const { stdout } = await run(
      String.raw`for part in '\xe2' '\x82' '\xac\xf0' '\x9f\x98' '\x80'; do printf "$part"; sleep 0.01; done`,
      { onOutput: (_, text) => shown.push(text) },
    )
    expect(stdout).toBe('€😀')
    expect(shown.join('')).toBe('€😀')
  })

  test('is shown as it comes, with the byte offset in its stream', async () => {
    const { run } = await openShells()
    const shown: [string, string, number][] = []
    let atFirst: (() => void) | undefined
    const first = new Promise<void>((resolve) => (atFirst = resolve))
    const ended = run('printf "é1"; sleep 0.1; printf err >&2; sleep 0.05; printf 2', {
      onOutput: (...part) => {
        shown.push(part)
        atFirst?.()
      },
    })
    expect(await Promise.race([first.then(() => 'shown'), ended.then(() => 'ended')])).toBe('shown')
    await ended
    expect(shown).toEqual([
      ['stdout', 'é1', 0],
      ['stderr', 'err', 0],
      ['stdout', '2', 3],
    ])
  })

  test('is not shown after the result', async () => {
    const { run } = await openShells()
    const shown: string[] = []
    const late = '(until [ -e go ]; do sleep 0.02; done; echo late; touch done) &'
    await run(`${late} echo now`, { onOutput: (_, text) => shown.push(text) })
    await run('touch go; until [ -e done ]; do sleep 0.02; done')
    expect(shown).toEqual(['now\n'])
  })

  test('that is not long is whole, and leaves no file', async () => {
    const { run } = await openShells({ limits: { outputBytes: 1000 } })
    const result = await run('printf %01000d 7')
    expect(result.stdout).toBe(`${'0'.repeat(999)}7`)
    expect(result).toMatchObject({ truncated: false })
    expect(result.fullOutputPath).toBeUndefined()
  })

  test('that is long has its head, its tail and the name of the file with the whole', async () => {
    const { run, outputDir } = await openShells({ limits: { outputBytes: 100 } })
    const result = await run('seq 1000; echo short >&2')
    const whole = Array.from({ length: 1000 }, (_, i) => `${i + 1}\n`).join('')
    expect(result.truncated).toBe(true)
    expect(result.fullOutputPath).toContain(outputDir)
    expect(result.stdout.startsWith(whole.slice(0, 50))).toBe(true)
    expect(result.stdout.endsWith(whole.slice(-50))).toBe(true)
    expect(result.stdout).toContain(
      `${whole.length - 100} bytes left out; the whole output is in ${result.fullOutputPath}`,
    )
    expect(await readFile(result.fullOutputPath!, 'utf8')).toBe(whole)
    expect(result.stderr).toBe('short\n')
  })

  test('that no result names yet is in a file that the next start would remove', async () => {
    const { run, outputDir, workdir } = await openShells({ limits: { outputBytes: 100 } })
    const ended = run('seq 1000; until [ -e go ]; do sleep 0.02; done')
    await expect.poll(() => readdir(outputDir)).toEqual([expect.stringMatching(/^stdout-.*[.]txt[.]new$/)])
    expect((await readdir(outputDir)).every(isDraftName)).toBe(true)
    await writeFile(join(workdir, 'go'), '')
    const { fullOutputPath } = await ended
    expect(await readdir(outputDir)).toEqual([basename(fullOutputPath!)])
    expect(isDraftName(fullOutputPath!)).toBe(false)
  })

  test('is not cut inside a character', async () => {
    const { run } = await openShells({ limits: { outputBytes: 101 } })
    const { stdout } = await run(`printf '€%.0s' {1..1000}`)
    expect(stdout).toMatch(/^€+\n\[… \d+ bytes left out[^\]]+\]\n€+$/)
  })

  test('of 100 MB costs little memory, and all of it is in the file', async () => {
    const { run } = await openShells()
    await run('true')
    const before = process.memoryUsage().rss
    let peak = before
    const watch = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 5)
    const flood = 'echo first; head -c 100000000 /dev/zero | tr "\\0" x; echo; echo last'
    // Once more: what the first left behind (a pipe that is not read) would show.
    for (const result of [await run(flood), await run(flood)]) {
      expect(result.exitCode).toBe(0)
      expect(result.stdout.startsWith('first\nxxx')).toBe(true)
      expect(result.stdout.endsWith('xxx\nlast\n')).toBe(true)
      expect(result.stdout.length).toBeLessThan(64 * 1024)
      expect((await stat(result.fullOutputPath!)).size).toBe(100_000_012)
    }
    clearInterval(watch)
    expect(peak - before).toBeLessThan(100 * MiB)
  })

  test('of more than a file may hold ends the command, and what came until then is in the file', async () => {
    const { run } = await openShells({ limits: { outputBytes: 1000, fullOutputBytes: MiB } })
    const result = await run('export BEFORE=kept; trap "" INT; yes; echo survived')
    expect(result).toMatchObject({ truncated: true, timedOut: false })
    expect(result.note).toMatch(/more output than a file may hold/)
    expect((await stat(result.fullOutputPath!)).size).toBe(MiB)
    expect((await run('echo $BEFORE')).stdout).toBe('kept\n')
  })

  test('of just what a file may hold ends nothing', async () => {
    const { run } = await openShells({ limits: { outputBytes: 1000, fullOutputBytes: MiB } })
    const result = await run(`head -c ${MiB - 1} /dev/zero`)
    expect(result).toMatchObject({ exitCode: 0, truncated: true })
    expect(result.note).toBeUndefined()
  })
})
