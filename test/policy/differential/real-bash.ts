/** A directory with traps, in which a real bash runs command lines. Tells what a line did that it must not do. */
import { spawnSync } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

/** Content that no line may show. */
const CANARY = 'canary-7f3a'

const PROGRAMS =
  `cat ls head tail grep printf test sort wc find rg sed diff cut uniq tr date seq stat basename realpath readlink comm
  paste nl od file du fold tac rev cmp strings git env timeout nohup nice xargs stdbuf setsid bash sh dash zsh which
  touch sleep`.split(/\s+/)

export class RealBash implements Disposable {
  readonly #root = fs.mkdtempSync(join(fs.realpathSync(tmpdir()), 'agent-server-traps-'))
  readonly workdir = join(this.#root, 'work')
  readonly outside = join(this.#root, 'outside')
  readonly home = join(this.#root, 'home')
  readonly #bin = join(this.#root, 'bin')
  readonly #ran = join(this.#root, 'ran')
  #before: ReadonlyMap<string, string>

  constructor() {
    fs.mkdirSync(this.#bin)
    for (const name of PROGRAMS) {
      const found = ['/usr/bin', '/bin', '/usr/local/bin'].map((each) => join(each, name)).find(fs.existsSync)
      if (found) fs.symlinkSync(found, join(this.#bin, name))
    }
    this.#script(join(this.#bin, 'evil'))
    fs.writeFileSync(join(this.#bin, 'ok'), '#!/bin/sh\n', { mode: 0o755 })
    this.#lay()
    this.#before = this.#look()
  }

  /** What the first harmful one of the lines does. One bash runs them all, which takes a fifth of the time of one for each. */
  harmOfAny(lines: readonly string[], mayChange: (path: string) => boolean): string | undefined {
    if (lines.length === 0) return undefined
    const { harm, wasKilled } = this.#run(lines, mayChange)
    // The lines after the one that was killed have not run. And only alone a line shows that the harm is its own.
    if (lines.length === 1 || (harm === undefined && !wasKilled)) return harm
    for (const line of lines) {
      const own = this.#run([line], mayChange).harm
      if (own !== undefined) return `${JSON.stringify(line)}: ${own}`
    }
    return harm
  }

  harmOf = (line: string, mayChange: (path: string) => boolean): string | undefined => this.#run([line], mayChange).harm

  #run(lines: readonly string[], mayChange: (path: string) => boolean) {
    const scripts = lines.map((_, at) => join(this.#root, `script-${at}`))
    for (const [at, line] of lines.entries()) fs.writeFileSync(scripts[at]!, line)
    const [own, ...others] = scripts.toReversed()
    const before = others.toReversed().map((script) => `(. ${script})`)
    const runs = [...before, `. ${own}`].join('\n')
    const start = `ulimit -t 2 -f 4096; shopt -s expand_aliases; cd ${this.workdir}\n${runs}`
    // It ends also the programs that bash waits for: `fold <(…)` can wait for itself.
    const { stdout, stderr, signal, status } = spawnSync(
      'timeout',
      ['-s', 'KILL', '3', 'bash', '--noprofile', '--norc', '-c', start],
      {
        env: { PATH: this.#bin, HOME: this.home, OLDPWD: this.workdir, LC_ALL: 'C.UTF-8', empty: '' },
        input: '',
      },
    )
    for (const script of scripts) fs.rmSync(script)
    const harm = this.#harmIn(`${String(stdout)}${String(stderr)}`, mayChange)
    return { harm, wasKilled: signal !== null || status === 137 }
  }

  #harmIn(output: string, mayChange: (path: string) => boolean): string | undefined {
    const harms = fs.existsSync(this.#ran) ? [`it ran ${fs.readFileSync(this.#ran, 'utf8')}`] : []
    if (output.includes(CANARY)) harms.push('it showed what is outside')
    const after = this.#look()
    const changed = [...new Set([...after.keys(), ...this.#before.keys()])].filter(
      (path) => after.get(path) !== this.#before.get(path),
    )
    for (const path of changed) {
      if (!mayChange(path)) harms.push(`it changed ${path}`)
      else if (after.get(path)?.includes(CANARY)) harms.push(`it copied what is outside to ${path}`)
    }
    fs.rmSync(this.#ran, { force: true })
    if (changed.length > 0) this.#lay()
    return harms.length > 0 ? harms.join('; ') : undefined
  }

  [Symbol.dispose](): void {
    fs.rmSync(this.#root, { recursive: true, force: true })
  }

  #script(path: string): void {
    fs.writeFileSync(path, `#!/bin/sh\necho "$0 $*" >> ${this.#ran}\n`, { mode: 0o755 })
  }

  #lay(): void {
    const { workdir, outside, home } = this
    for (const directory of [workdir, outside, home]) fs.rmSync(directory, { recursive: true, force: true })
    for (const directory of [home, outside, join(workdir, 'src'), join(workdir, 'sub/deep')])
      fs.mkdirSync(directory, { recursive: true })
    const files = { 'a.txt': 'one\ntwo\n', 'src/b.txt': 'b\n', 'sub/c.txt': 'c\n', 'sub/deep/d.txt': 'd\n' }
    for (const [path, text] of Object.entries(files)) fs.writeFileSync(join(workdir, path), text)
    fs.writeFileSync(join(outside, 'secret.txt'), `${CANARY}\n`)
    fs.writeFileSync(join(home, 'secret'), `${CANARY}\n`)
    const links = {
      link: '../outside',
      flink: '../outside/secret.txt',
      up: 'sub/deep',
      'src/link': '../../outside',
      'sub/deep/out': '../../../outside',
      'sub/flink': '../../outside/secret.txt',
      'sub/up': '../2',
    }
    for (const [path, target] of Object.entries(links)) fs.symlinkSync(target, join(workdir, path))
    this.#script(join(workdir, 'run'))
    // Git obeys it where a line leads there: behind `sub/up/..`, which is not next to `2`.
    for (const name of ['objects', 'refs']) fs.mkdirSync(join(workdir, 'sub/.git', name), { recursive: true })
    fs.writeFileSync(join(workdir, 'sub/.git/HEAD'), 'ref: refs/heads/main\n')
    fs.writeFileSync(join(workdir, 'sub/.git/config'), '[core]\nrepositoryformatversion = 0\nfsmonitor = evil\n')
    // Found by `PATH=2`.
    fs.mkdirSync(join(workdir, '2'))
    for (const name of ['ls', 'cat']) this.#script(join(workdir, '2', name))
  }

  #look(): Map<string, string> {
    const found = new Map<string, string>()
    for (const directory of [this.workdir, this.outside, this.home])
      for (const path of ['', ...fs.readdirSync(directory, { recursive: true }).map(String)]) {
        const whole = join(directory, path)
        found.set(whole, describe(whole))
      }
    return found
  }
}

function describe(path: string): string {
  const stats = fs.lstatSync(path)
  if (stats.isSymbolicLink()) return `link ${fs.readlinkSync(path)}`
  return stats.isFile() ? `file ${stats.mode} ${fs.readFileSync(path, 'latin1')}` : `other ${stats.mode}`
}
