export default {
  title: "Kết nối",
  intro:
    "Với các thiết lập này, ứng dụng MCP sẽ dùng được công cụ của Kho. Hãy sao chép phần dành cho ứng dụng của bạn.",
  toolset: "Công cụ",
  toolsets: {
    all: "Tất cả công cụ",
    documents: "Tài liệu",
    memory: "Hội thoại",
    knowledge: "Kho tri thức",
    experiences: "Kinh nghiệm",
    devices: "Thiết bị",
    search: "Tìm kiếm (hai công cụ, cho nghiên cứu sâu)",
  },
  credentials: "Xác thực",
  by_sign_in: "Ứng dụng tự đăng nhập",
  by_key: "Dùng khóa của Kho",
  key_help:
    "Tạo khóa bằng lệnh: kho keys create --tenant <tên> --role writer. Ứng dụng đọc khóa từ biến môi trường KHO_KEY.",
  install: "Thêm vào {name}",
  unreachable:
    "Dịch vụ này kết nối từ đám mây của họ nên không tới được địa chỉ này: Kho cần một địa chỉ https công khai (KHO_PUBLIC_URL).",
  jump_links: "Ứng dụng",
  clients: {
    cursor: "Cursor",
    vscode: "VS Code",
    claude_code: "Claude Code",
    codex: "Codex",
    claude_ai: "claude.ai",
    chatgpt: "ChatGPT",
  },
  places: { url: "Địa chỉ máy chủ", terminal: "Trong cửa sổ lệnh" },
  steps: {
    cursor: "Bấm vào liên kết, hoặc chép đoạn này vào tệp.",
    vscode: "Bấm vào liên kết, hoặc chép đoạn này vào tệp trong dự án của bạn.",
    claude_code: "Chạy lệnh, hoặc chép thiết lập vào tệp của dự án dùng chung.",
    codex: "Chép đoạn này vào tệp rồi khởi động lại Codex.",
    claude_ai: "Settings → Connectors → Add custom connector. Tên: Kho; để trống các ô OAuth; rồi chọn Add và Connect.",
    chatgpt:
      "Settings → Apps → Advanced settings: bật Developer mode. Sau đó chọn Create app, xác thực OAuth, và nhập địa chỉ này.",
  },
};
