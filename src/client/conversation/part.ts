/** What the parts of a conversation share. */
import type { Api } from '../request/api.ts'

export class ConversationPart {
  protected readonly api: Api
  protected readonly id: string

  constructor(api: Api, id: string) {
    this.api = api
    this.id = id
  }
}
