// openapi-fetch with the types that openapi-typescript has written: a list, and the typed error of an unknown document.
import createClient from "openapi-fetch";
import type { paths } from "./generated";

async function main(baseUrl: string): Promise<void> {
  const client = createClient<paths>({ baseUrl });
  const list = await client.POST("/agent-data/list_children", { body: {} });
  console.log(list.data?.children.map((each) => each.document_id));
  const { error } = await client.POST("/agent-data/list_ancestors", { body: { document_id: "nope" } });
  if (error && "error" in error) console.log(error.error.code, error.error.guidance);
}

main(process.argv[2]);
