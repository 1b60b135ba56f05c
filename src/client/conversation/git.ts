/** The user's own git repository in a conversation's workdir. */
import type { QueryFor } from '../operations/operations.ts'
import type { Api, CallOptions } from '../request/api.ts'

export class GitClient {
  readonly #api: Api
  readonly #id: string

  constructor(api: Api, id: string) {
    this.#api = api
    this.#id = id
  }

  /** Returns the branch and one page of the files that are not as in the commit of HEAD. */
  status(query?: QueryFor<'getGitStatus'>, options?: CallOptions) {
    return this.#api.call('getGitStatus', { params: { id: this.#id }, query }, options)
  }

  /** Returns one page of the files that differ from a commit, with their patches. */
  diff(query?: QueryFor<'getGitDiff'>, options?: CallOptions) {
    return this.#api.call('getGitDiff', { params: { id: this.#id }, query }, options)
  }

  /** Downloads a file of a commit. */
  file(query: QueryFor<'getGitFile'>, options: CallOptions = {}): Promise<Response> {
    return this.#api.send('getGitFile', { params: { id: this.#id }, query }, options, asResponse)
  }
}

const asResponse = (response: Response): Response => response
