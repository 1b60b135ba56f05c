/** Stores which conversations work in a shared workdir, as rows: the workdir is a hash of its path. */
import { hashOfWorkdir } from '../../shared/workdir-hash.ts'
import type { SharedWorkdirs } from '../../storage.ts'
import type { Tables } from './tables.ts'
import { step } from './tables.ts'

const ADD = 'INSERT INTO shared_workdirs VALUES (?, ?) ON CONFLICT DO NOTHING'
const ALL = 'SELECT id FROM shared_workdirs WHERE workdir = ?'
const MOVE = `UPDATE shared_workdirs SET workdir = ?2
  WHERE workdir = ?1 AND NOT EXISTS (SELECT 1 FROM shared_workdirs WHERE workdir = ?2)`
const LEAVE = 'DELETE FROM shared_workdirs WHERE workdir = ? AND id = ?'

export class SharedWorkdirRows implements SharedWorkdirs {
  readonly #tables: Tables
  readonly #isThere: (id: string) => Promise<boolean>

  /** `isThere` returns true if anything of a conversation exists. */
  constructor(tables: Tables, isThere: (id: string) => Promise<boolean>) {
    this.#tables = tables
    this.#isThere = isThere
  }

  async add(workdir: string, ids: readonly string[]): Promise<void> {
    await this.#tables.write(...ids.map((id) => step(ADD, hashOfWorkdir(workdir), id)))
  }

  async isShared(workdir: string): Promise<boolean> {
    return (await this.#idsIn(workdir)).length > 0
  }

  async has(workdir: string, id: string): Promise<boolean> {
    return (await this.#idsIn(workdir)).includes(id)
  }

  async move(workdir: string, to: string): Promise<void> {
    if (await this.isShared(workdir)) await this.#tables.write(step(MOVE, hashOfWorkdir(workdir), hashOfWorkdir(to)))
  }

  async leave(workdir: string, id: string): Promise<boolean> {
    const goneIds: string[] = []
    for (const each of await this.#idsIn(workdir)) if (each === id || !(await this.#isThere(each))) goneIds.push(each)
    if (goneIds.length === 0) return !(await this.isShared(workdir))
    const hash = hashOfWorkdir(workdir)
    const answers = await this.#tables.write(...goneIds.map((each) => step(LEAVE, hash, each)), step(ALL, hash))
    return answers.at(-1)?.length === 0
  }

  async #idsIn(workdir: string): Promise<string[]> {
    return (await this.#tables.read(ALL, hashOfWorkdir(workdir))).map(({ id }) => String(id))
  }
}
