/**
 * Files that change at random, by hand and by the agent, and go back at random, while the server is killed in the middle.
 * `KILLS` says how many rounds there are, `SEED` what is done; a failure names its seed.
 */
import { execFileSync } from 'node:child_process'
import * as fs from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import type { Script } from '../../src/llm/scripted/script.ts'
import { setStage } from '../support/agent.ts'
import { effort, PATIENCE_MS } from '../support/patience.ts'
import type { Random } from '../support/random.ts'
import { createRandom } from '../support/random.ts'
import { takeTime } from '../support/take-time.ts'
import { changeSomething, describeTree, isWithin, sorted } from '../workspace/snapshots/random-tree.ts'

const ROUNDS = Number(process.env['KILLS'] ?? effort(4, 600))
const SEED = Number(process.env['SEED'] ?? Date.now() % 1_000_000)
/** A snapshot or a restore of these trees takes less. */
const LONGEST_MS = 120

type Tree = ReadonlyMap<string, string>
type LeftOut = readonly { readonly path: string }[]
type Taken = { readonly snapshot_id: string; readonly as_of_seq: number; readonly left_out: LeftOut }

/** What a message asks for is in the message. */
const SCRIPT: Script = ({ body: { messages } }) => {
  const last = messages.findLastIndex(({ role }) => role === 'user')
  const step = messages.slice(last).filter(({ role }) => role === 'assistant').length
  const commands = /do (\S+)/.exec(JSON.stringify(messages[last]))?.[1] ?? ''
  const command = Buffer.from(commands, 'base64').toString().split('\0')[step]
  return command ? { calls: [{ name: 'Bash', arguments: { command } }] } : { text: 'Done.', chunk_delay_ms: 2 }
}

const COMMANDS = [
  (n: number) => `mkdir -p sub build b; echo ${n} >sub/a; echo ${n} >build/out; echo ${n} >b/d.log`,
  (n: number) => `rm -rf sub; printf '${n}\\r\\n' >a; chmod 755 a`,
  (n: number) => `ln -sfn ../outside link; mkdir -p empty/${n}; chmod 700 empty`,
  (n: number) => `rm -rf b; printf '\\377${n}' >"$(printf 'x\\377')"`,
  (n: number) => `echo '*.log' >.gitignore; echo ${n} >d.log; truncate -s 11M large; mv c.txt b`,
  (n: number) => `rm -f .gitignore large a; mkdir -p a; echo ${n} >a/c.txt; echo ${n} >nested/inner`,
  (n: number) => `echo ${n} >large; echo build >.gitignore; echo "${n}" >>new`,
]

test(
  `${ROUNDS} rounds of changes, rewinds and kills, seed ${SEED}: what was stored comes back, and nothing else changes`,
  { timeout: 2 * PATIENCE_MS + ROUNDS * 30_000 },
  async () => {
    const random = createRandom(SEED)
    await using stage = await setStage(SCRIPT, {})
    const subject = makeSubject(stage.server.home)
    const id = await stage.create({ workdir: subject.workdir, file_checkpointing: true })
    const checker = new Checker(stage, id, subject)
    for (let round = 0; round < ROUNDS; round++) {
      for (let change = random.below(8); change > 0; change--) changeSomething(subject.workdir, random)
      if (random.below(2) === 0) await checker.run(random, random.below(3) === 0)
      else await checker.rewind(random, random.below(2) === 0)
      subject.expectUntouched(`round ${round + 1}, seed ${SEED}`)
    }
    await stage.server.restart()
    await checker.run(random, false)
    const { directory } = checker
    // What is no longer needed is removed after the run.
    expect(await stage.server.stop()).toBe(0)
    execFileSync('git', ['--git-dir=.', 'fsck', '--full', '--strict'], { cwd: directory, stdio: 'pipe' })
    subject.expectUntouched(`the end, seed ${SEED}`)
  },
)

/** A repository that would do harm if its settings had an effect, and what is next to it. */
function makeSubject(home: string) {
  const place = join(home, 'place')
  const [workdir, outside, mark] = [join(place, 'work'), join(place, 'outside'), join(place, 'executed')]
  fs.mkdirSync(join(workdir, 'hooks'), { recursive: true })
  fs.mkdirSync(outside)
  fs.writeFileSync(join(outside, 'secret'), 'secret')
  const git = (...args: string[]) =>
    execFileSync('git', ['-c', 'user.name=a', '-c', 'user.email=a@example.com', ...args], {
      cwd: workdir,
      stdio: 'pipe',
      env: { PATH: process.env['PATH'], HOME: place },
    })
  git('init', '-q')
  fs.writeFileSync(join(workdir, 'c.txt'), 'one\r\n$Id$\r\n')
  git('add', '.')
  git('commit', '-q', '-m', 'first')
  fs.writeFileSync(join(workdir, 'c.txt'), 'two\n')
  git('stash', '-q')
  fs.writeFileSync(join(workdir, 'staged'), 'staged')
  git('add', 'staged')
  git('pack-refs', '--all')
  for (const key of ['core.fsmonitor', 'filter.x.clean', 'filter.x.smudge', 'diff.external', 'core.sshCommand'])
    git('config', key, `touch ${mark}; cat`)
  git('config', 'core.hooksPath', join(workdir, 'hooks'))
  git('config', 'core.autocrlf', 'true')
  git('config', 'core.worktree', outside)
  for (const hook of ['post-index-change', 'pre-commit', 'reference-transaction', 'post-checkout'])
    for (const directory of ['hooks', '.git/hooks'])
      fs.writeFileSync(join(workdir, directory, hook), `#!/bin/sh\ntouch ${mark}\n`, { mode: 0o755 })
  fs.writeFileSync(join(workdir, '.gitattributes'), '* text=auto eol=lf ident filter=x working-tree-encoding=UTF-16\n')
  fs.cpSync(join(workdir, '.git'), join(workdir, 'inner/.git'), { recursive: true })
  fs.writeFileSync(join(workdir, 'inner/file'), 'file')
  fs.mkdirSync(join(workdir, 'pointing'))
  fs.writeFileSync(join(workdir, 'pointing/.git'), `gitdir: ${outside}\n`)
  fs.symlinkSync('../outside', join(workdir, 'out'))
  const repositories = () => [join(workdir, '.git'), join(workdir, 'inner/.git'), outside].map(describe)
  const pointer = () => fs.readFileSync(join(workdir, 'pointing/.git'), 'latin1')
  const before = [repositories(), pointer()]
  return {
    workdir,
    expectUntouched(when: string): void {
      expect([repositories(), pointer()], when).toEqual(before)
      expect(fs.readdirSync(place).sort(), when).toEqual(['outside', 'work'])
    },
  }
}

const describe = (directory: string) => sorted(describeTree(directory))

class Checker {
  readonly #stage: Awaited<ReturnType<typeof setStage>>
  readonly #id: string
  readonly #workdir: string
  /** What the files were at each snapshot that the test knows, without what it has left out. */
  readonly #trees = new Map<string, Tree>()
  readonly directory: string
  #rounds = 0

  constructor(stage: Awaited<ReturnType<typeof setStage>>, id: string, { workdir }: { readonly workdir: string }) {
    this.#stage = stage
    this.#id = id
    this.#workdir = workdir
    this.directory = join(stage.server.dataDir, 'sessions', id, 'snapshots')
  }

  /** A run of random commands; with `isKilled`, the server is killed in it. */
  async run(random: Random, isKilled: boolean): Promise<void> {
    const before = this.#tree()
    const known = await this.#taken()
    const commands = Array.from({ length: 1 + random.below(3) }, () => random.pick(COMMANDS)(++this.#rounds))
    const text = `do ${Buffer.from(commands.join('\0')).toString('base64')}`
    const work = this.#stage.say(this.#id, text).catch((error: unknown) => {
      if (!isKilled) throw error
    })
    if (isKilled) await this.#kill(random, work)
    else await work
    const taken = (await this.#taken()).slice(known.length)
    const [message] = (await this.#events('UserMessage')).slice(-1)
    // The one from before the run.
    const first = taken.find(({ as_of_seq }) => as_of_seq < (message?.seq ?? 0))
    if (first) this.#learn(first.snapshot_id, before, await this.#events('WorkspaceSnapshot'))
    const last = (await this.#taken()).at(-1)
    if (!isKilled && last) this.#learn(last.snapshot_id, this.#tree(), await this.#events('WorkspaceSnapshot'))
  }

  /** Goes back to a random event; with `isKilled`, the server is killed meanwhile, and the client asks again. */
  async rewind(random: Random, isKilled: boolean): Promise<void> {
    const known = await this.#taken()
    if (known.length === 0) return
    const conversation = !isKilled && random.below(2) === 0
    const place = random.pick(known).as_of_seq + random.below(3)
    const head = (await this.#events()).at(-1)!.seq
    const request = {
      to_seq: Math.min(Math.max(place, 1), head),
      last_seq: head,
      files: true,
      conversation,
      force: true,
    }
    const before = this.#tree()
    const post = (body: typeof request) => this.#stage.server.call('POST', `/conversations/${this.#id}/rewind`, body)
    if (isKilled) {
      await this.#kill(
        random,
        post(request).catch(() => {}),
      )
      // Each file is the old one or the new one, also in the middle.
      const target = this.#trees.get(this.#targetOf(known, request.to_seq).snapshot_id)
      for (const [path, is] of this.#tree())
        if (target && is.startsWith('file')) expect([before.get(path), target.get(path)], path).toContain(is)
    }
    let answer = await post(request)
    // The kill came after the end of the first request: the client looks, and asks again.
    if (isKilled && answer.body.error === 'conversation_changed') {
      request.last_seq = (await this.#events()).at(-1)!.seq
      answer = await post(request)
    }
    if (answer.status === 400) {
      request.to_seq = answer.body.details.nearest
      answer = await post(request)
    }
    const target = this.#targetOf(known, request.to_seq)
    // Only the last ones of old messages are kept.
    if (answer.status === 404) return expect(answer.body.error).toBe('snapshot_not_found')
    expect(answer, JSON.stringify({ body: answer.body, seed: SEED })).toMatchObject({
      status: 200,
      body: { files: { snapshot_id: target.snapshot_id } },
    })
    const { left_out, failed } = answer.body.files
    const taken = await this.#events('WorkspaceSnapshot')
    const kept = taken.slice(known.length).find(({ as_of_seq }) => as_of_seq <= head)
    if (kept && !isKilled) this.#learn(kept.snapshot_id, before, taken)
    const wanted = this.#trees.get(target.snapshot_id)
    if (!wanted) return
    this.#expectRestored({ before: isKilled ? undefined : before, wanted, leftOut: left_out, failed })
  }

  #expectRestored(did: { before: Tree | undefined; wanted: Tree; leftOut: LeftOut; failed: LeftOut }): void {
    const [left, failed] = [did.leftOut, did.failed].map((all) => all.map(({ path }) => path)) as [string[], string[]]
    const after = this.#tree()
    const isLeft = (path: string) => isWithin(left)(shown(path))
    const isExcused = (path: string) =>
      isLeft(path) || isWithin(failed)(shown(path)) || left.some((each) => each.startsWith(`${shown(path)}/`))
    const only = (tree: Tree, is: (path: string) => boolean) => sorted(new Map([...tree].filter(([path]) => is(path))))
    expect(
      only(after, (path) => !isExcused(path)),
      `seed ${SEED}`,
    ).toEqual(only(did.wanted, (path) => !isExcused(path)))
    if (did.before) expect(only(after, isLeft), `seed ${SEED}`).toEqual(only(did.before, isLeft))
  }

  async #kill(random: Random, work: Promise<unknown>): Promise<void> {
    await takeTime(random.below(LONGEST_MS))
    await this.#stage.server.restart('SIGKILL')
    await work
  }

  #targetOf(known: readonly Taken[], seq: number): Taken {
    return known.findLast(({ as_of_seq }) => as_of_seq <= seq) ?? known[0]!
  }

  #learn(id: string, tree: Tree, taken: readonly Taken[]): void {
    const leftOut = taken.find(({ snapshot_id }) => snapshot_id === id)?.left_out ?? []
    const isLeft = isWithin(leftOut.map(({ path }) => path))
    this.#trees.set(id, new Map([...tree].filter(([path]) => !isLeft(shown(path)))))
  }

  #tree(): Tree {
    return describeTree(this.#workdir, (path) => path === '.git' || path.endsWith('/.git'))
  }

  async #taken(): Promise<readonly Taken[]> {
    return await this.#events('WorkspaceSnapshot')
  }

  async #events(type?: string) {
    return await this.#stage.events(this.#id, type === undefined ? '' : `types=${type}`)
  }
}

/** As events have it. */
const shown = (path: string) => Buffer.from(path, 'latin1').toString()
