/** A terminal with a program in it: a pseudo-terminal of `script`, and an emulator that knows what its screen shows. */
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import xterm from '@xterm/headless'
import { until } from '../../../support/until.ts'
import { quote } from '../../../../src/shell/bash-script.ts'

export const KEYS = {
  enter: '\r',
  escape: '\x1b',
  tab: '\t',
  shiftTab: '\x1b[Z',
  up: '\x1b[A',
  down: '\x1b[B',
  left: '\x1b[D',
  ctrlC: '\x03',
  ctrlD: '\x04',
  ctrlG: '\x07',
  altEnter: '\x1b\r',
  ctrlO: '\x0f',
  ctrlR: '\x12',
  ctrlU: '\x15',
  ctrlZ: '\x1a',
} as const

export type TerminalOptions = {
  readonly env: Record<string, string>
  readonly columns?: number
  readonly rows?: number
  readonly cwd?: string
}

export class Terminal implements AsyncDisposable {
  readonly #screen: xterm.Terminal
  readonly #child
  readonly #home = mkdtempSync(join(tmpdir(), 'chat-terminal-'))
  #written: Promise<void> = Promise.resolve()
  /** Everything the program has written. */
  output = ''

  constructor(program: readonly string[], { env, columns = 100, rows = 40, cwd }: TerminalOptions) {
    this.#screen = new xterm.Terminal({ cols: columns, rows, allowProposedApi: true, scrollback: 5000 })
    const quoted = program.map(quote).join(' ')
    // It has the terminal from its start: a shell that finds another program there stops itself.
    const line = `tty > ${this.#home}/tty; stty cols ${columns} rows ${rows}; echo BEFORE; (echo $BASHPID > ${this.#home}/pid; exec ${quoted}); echo "EXIT $?"; stty -a | grep -o '[-]*icanon\\|[-]*echo '`
    this.#child = spawn('script', ['-qfc', `bash -mc "${line.replaceAll(/[\\"$`]/g, String.raw`\$&`)}"`, '/dev/null'], {
      env: {
        PATH: process.env['PATH'],
        HOME: this.#home,
        TERM: 'xterm-256color',
        SHELL: '/bin/bash',
        TMPDIR: process.env['TMPDIR'],
        // A program that runs from the sources starts in less than two thirds of the processor time.
        ...(program[0] === process.execPath && { NODE_COMPILE_CACHE: process.env['NODE_COMPILE_CACHE'] }),
        ...env,
      },
      stdio: ['pipe', 'pipe', 'inherit'],
      ...(cwd !== undefined && { cwd }),
    })
    this.#child.stdout.setEncoding('utf8').on('data', (text: string) => {
      this.output += text
      this.#written = new Promise((resolve) => this.#screen.write(text, resolve))
    })
    // Replies to the questions that programs ask a terminal.
    this.#screen.onData((reply) => this.#child.stdin.write(reply))
    this.#child.stdin.on('error', () => {})
  }

  /** The lines of the screen, with what has scrolled out of it. */
  get text(): string {
    const buffer = this.#screen.buffer.active
    const lines = Array.from(
      { length: buffer.length },
      (_, at) => buffer.getLine(at)?.translateToString(true).trimEnd() ?? '',
    )
    return lines.join('\n').trimEnd()
  }

  get lines(): string[] {
    return this.text.split('\n')
  }

  /** Whether any cell of the screen has a colour. */
  get isColored(): boolean {
    // oxlint-disable-next-line no-control-regex -- the sequences of colours
    return /\x1b\[(?:[0-9;]*;)?(?:3[0-8]|4[0-8]|9[0-7])(?:;[0-9;]*)?m/.test(this.output)
  }

  get pid(): number {
    return Number(readFileSync(join(this.#home, 'pid'), 'utf8'))
  }

  press(...keys: string[]): void {
    for (const key of keys) this.#child.stdin.write(key)
  }

  /** Types a line and sends it. */
  async say(text: string): Promise<void> {
    this.press(text)
    // The Enter of a paste would be part of it.
    await this.shows(text.split('\n').at(-1)!.slice(-20))
    this.press(KEYS.enter)
  }

  resize(columns: number, rows: number): void {
    this.#screen.resize(columns, rows)
    const tty = readFileSync(join(this.#home, 'tty'), 'utf8').trim()
    execFileSync('stty', ['-F', tty, 'cols', String(columns), 'rows', String(rows)])
  }

  /** A text may be wrapped at any blank: where a line ends depends on the directory of the test. */
  async shows(what: string | RegExp): Promise<void> {
    const pattern = typeof what === 'string' ? new RegExp(RegExp.escape(what).replaceAll(/(?:\\x20)+/g, '\\s+')) : what
    await this.until(() => pattern.test(this.text), `to show ${what}`)
  }

  async hides(what: string): Promise<void> {
    await this.until(() => !this.text.includes(what), `to hide ${what}`)
  }

  async until(isSo: () => boolean, what: string): Promise<void> {
    const look = async () => {
      await this.#written
      return isSo()
    }
    await until(what, look).catch((cause: unknown) => {
      throw new Error(`The screen was expected ${what}, and shows:\n${this.text}`, { cause })
    })
  }

  /** The last lines: the exit code, and whether the terminal is as it was. */
  async ended(): Promise<{ readonly exitCode: number; readonly isRestored: boolean }> {
    await this.shows(/EXIT \d+\n[\s\S]*echo/)
    const after = this.text.slice(this.text.lastIndexOf('EXIT'))
    const modes = this.#screen.modes
    const isRestored =
      !/-icanon|-echo/.test(after) &&
      !modes.bracketedPasteMode &&
      modes.wraparoundMode &&
      /\x1b\[\?25h(?!.*\x1b\[\?25l)/s.test(this.output) // oxlint-disable-line no-control-regex -- shows the cursor
    return { exitCode: Number(/EXIT (\d+)/.exec(after)?.[1]), isRestored }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      this.#child.kill('SIGKILL')
      await once(this.#child, 'exit')
    }
    this.#screen.dispose()
    rmSync(this.#home, { recursive: true, force: true })
  }
}
