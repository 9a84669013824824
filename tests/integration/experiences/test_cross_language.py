"""An experience in one language answers a question in another."""

from __future__ import annotations

from typing import TYPE_CHECKING
from uuid import uuid4

import pytest

from shared.experiences import index as experience_index
from shared.search.embedding.e5 import E5
from shared.search.exhaustive_search import ExhaustiveSearch
from tests.helpers.experience_client import call_successfully, submit_experience

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infra.local.search_engine.embedded import EmbeddedVectorStore

# Title, problem and solution of an experience, and the question that should find it.
PAIRS = {
    "vi→en": [
        (
            "React state is stale inside setInterval",
            "The callback always logs the first value of the counter.",
            "The closure keeps the old value: use a ref, or the functional form of setState.",
            "biến state trong setInterval của React luôn là giá trị cũ",
        ),
        (
            "Git push is rejected: non-fast-forward",
            "The remote branch has commits that the local one does not have.",
            "Fetch and rebase on the remote branch, then push again.",
            "không đẩy code lên git được vì nhánh trên máy chủ mới hơn",
        ),
        (
            "Docker container exits immediately after start",
            "docker ps shows nothing, docker ps -a shows Exited (0).",
            "The main process must stay in the foreground; do not start it as a daemon.",
            "container docker vừa chạy đã tự tắt",
        ),
        (
            "Emails from the server land in the spam folder",
            "Gmail marks all our messages as spam.",
            "Set up SPF, DKIM and DMARC records for the sending domain.",
            "thư gửi từ máy chủ bị đưa vào hộp thư rác",
        ),
        (
            "Memory of the Node.js process grows until it crashes",
            "Heap snapshots show listeners that are never removed.",
            "Remove event listeners when the connection closes.",
            "ứng dụng Node bị rò rỉ bộ nhớ rồi sập",
        ),
        (
            "Timezone shifts dates by one day",
            "A date that was chosen in the calendar is saved as the day before.",
            "Send dates without time, or convert to UTC explicitly.",
            "ngày lưu vào cơ sở dữ liệu bị lệch một ngày do múi giờ",
        ),
        (
            "The disk is full though no large files are seen",
            "df says 100 %, du finds nothing.",
            "Deleted files were still open: restart the process that holds them.",
            "ổ đĩa báo đầy nhưng không tìm thấy tệp lớn nào",
        ),
        (
            "SSL certificate has expired although it was renewed",
            "The browser still shows the old certificate.",
            "The web server has to be reloaded after the renewal.",
            "đã gia hạn chứng chỉ SSL mà trình duyệt vẫn báo hết hạn",
        ),
    ],
    "zh→en": [
        (
            "CORS error when the frontend calls the API",
            "No 'Access-Control-Allow-Origin' header is present on the response.",
            "Answer the preflight request and send the header for the allowed origin.",
            "前端调用接口出现跨域错误",
        ),
        (
            "Database queries became slow after the table grew",
            "EXPLAIN shows a sequential scan.",
            "Create an index on the columns of the WHERE clause.",
            "数据表变大以后查询变得很慢",
        ),
        (
            "Two workers process the same message of the queue",
            "The visibility timeout is shorter than the processing time.",
            "Extend the timeout, and make processing idempotent.",
            "队列里的同一条消息被重复处理",
        ),
        (
            "Unit tests pass alone and fail together",
            "The order of tests changes the outcome because of shared global state.",
            "Reset the global state in a fixture before each test.",
            "单元测试单独运行通过，一起运行却失败",
        ),
        (
            "The mobile keyboard hides the input field",
            "On phones the form cannot be seen while typing.",
            "Scroll the focused field into view and use the visual viewport.",
            "手机键盘弹出后挡住输入框",
        ),
        (
            "Kubernetes pod is killed with OOMKilled",
            "The container uses more memory than its limit.",
            "Raise the memory limit, or bound the cache of the application.",
            "Pod 因内存不足被杀死",
        ),
        (
            "Chinese characters become question marks in MySQL",
            "The column uses the latin1 character set.",
            "Convert the table and the connection to utf8mb4.",
            "数据库里的中文变成了问号",
        ),
        (
            "pip installs a package but import does not find it",
            "ModuleNotFoundError though pip says already satisfied.",
            "pip belongs to another interpreter: use python -m pip in the virtual environment.",
            "包已经安装了但是导入时提示找不到模块",
        ),
    ],
    "en→vi": [
        (
            "Trang web tải ảnh rất chậm",
            "Ảnh gốc nặng hàng megabyte được gửi thẳng tới điện thoại.",
            "Nén ảnh, dùng định dạng WebP và tải ảnh khi cuộn tới.",
            "images on the website load too slowly",
        ),
        (
            "Đăng nhập xong lại bị đưa về trang đăng nhập",
            "Cookie không được lưu vì thiếu thuộc tính SameSite và Secure.",
            "Đặt SameSite=None; Secure và dùng HTTPS.",
            "redirected back to the login page after signing in",
        ),
        (
            "Hai người cùng mua được món hàng cuối cùng",
            "Kiểm tra tồn kho rồi mới trừ nên hai giao dịch chen nhau.",
            "Trừ tồn kho bằng một câu lệnh có điều kiện, hoặc khóa dòng.",
            "two customers can buy the last item in stock at once",
        ),
        (
            "Tệp tải lên bị cắt ở 1 MB",
            "Máy chủ Nginx trả về lỗi 413.",
            "Tăng client_max_body_size trong cấu hình Nginx.",
            "upload of large files fails with request entity too large",
        ),
        (
            "Cảm biến nhiệt độ báo sai sau vài giờ",
            "Bo mạch nóng lên và làm nóng cả cảm biến.",
            "Đặt cảm biến xa vi điều khiển và giảm tần số đo.",
            "temperature sensor gives wrong readings because the board heats up",
        ),
        (
            "Ứng dụng Android bị thoát khi xoay màn hình",
            "Activity bị tạo lại và mất dữ liệu đang nhập.",
            "Giữ dữ liệu trong ViewModel.",
            "Android app loses its data when the screen is rotated",
        ),
        (
            "Bản sao lưu không khôi phục được",
            "Tệp sao lưu được tạo khi cơ sở dữ liệu đang ghi.",
            "Dùng công cụ sao lưu nhất quán và thử khôi phục hằng tuần.",
            "backup cannot be restored because it was taken while the database was writing",
        ),
    ],
    "en→zh": [
        (
            "定时任务在多台服务器上重复执行",
            "每台机器都运行同一个定时任务。",
            "使用分布式锁，保证同一时间只有一台机器执行。",
            "scheduled job runs several times because there are many servers",
        ),
        (
            "缓存同时失效导致数据库崩溃",
            "大量缓存在同一时刻过期，请求全部打到数据库。",
            "给过期时间加上随机值，并在重建缓存时加锁。",
            "database overload when all cache entries expire at the same moment",
        ),
        (
            "浮点数计算金额出现误差",
            "0.1 加 0.2 不等于 0.3。",
            "用整数分或者十进制类型保存金额。",
            "rounding errors when calculating money with floating point numbers",
        ),
        (
            "无线网络断开后设备不再重连",
            "设备只在启动时连接一次。",
            "监听断线事件，并按递增间隔重试。",
            "device does not reconnect after the wifi was lost",
        ),
        (
            "页面滚动时列表卡顿",
            "一次渲染了上万个节点。",
            "使用虚拟列表，只渲染可见的部分。",
            "scrolling a long list is laggy in the browser",
        ),
        (
            "导出的表格用 Excel 打开是乱码",
            "文件是没有字节顺序标记的编码。",
            "在文件开头写入字节顺序标记。",
            "CSV export shows garbled text when opened in Excel",
        ),
        (
            "支付回调被调用多次导致重复发货",
            "支付平台在没有收到确认时会重试。",
            "按订单号去重，处理必须幂等。",
            "payment webhook is delivered twice and the order ships twice",
        ),
    ],
}
OTHERS = [
    ("Webpack build is slow", "Each build takes minutes.", "Use the persistent cache."),
    ("Terraform wants to replace a resource", "A tag changed.", "Ignore changes of that tag."),
    ("Regular expression hangs on long input", "It backtracks.", "Use an engine without backtracking."),
    ("Vòng lặp vô hạn trong useEffect", "Thành phần hiển thị lại mãi.", "Thêm mảng phụ thuộc."),
    ("Không kết nối được Bluetooth", "Thiết bị đã ghép đôi với máy khác.", "Xóa ghép đôi cũ."),
    ("Lỗi phân quyền tệp trên Linux", "Dịch vụ không ghi được vào thư mục.", "Đổi chủ sở hữu thư mục."),
    ("登录验证码总是错误", "会话没有共享。", "把验证码存到共享的存储里。"),
    ("编译时找不到头文件", "没有设置包含路径。", "在构建脚本里加上路径。"),
    ("语音识别延迟很高", "每次都重新加载模型。", "启动时加载一次模型。"),
    ("GPU is not used by the training", "The CPU build of the library is installed.", "Install the CUDA build."),
]
RANKS = 3


@pytest.fixture(scope="module", autouse=True)
def _shelf(shelves: EmbeddedVectorStore) -> Iterator[None]:
    """Use one collection for both tests."""
    own = ExhaustiveSearch(E5(), shelves, uuid4().hex)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experience_index, "_search_index", lambda: own)
        yield


@pytest.fixture(scope="module")
def ids_by_title(_shelf: None, store: str) -> dict[str, str]:
    """Submit all experiences and return their ids by title."""
    experiences = [pair[:3] for pairs in PAIRS.values() for pair in pairs] + OTHERS
    return {title: submit_experience(title, problem, solution) for title, problem, solution in experiences}


def test_corpus_has_thirty_pairs_in_forty_experiences(ids_by_title: dict[str, str]) -> None:
    assert sum(map(len, PAIRS.values())) == 30
    assert len(ids_by_title) >= 40


def test_query_finds_experience_in_another_language(ids_by_title: dict[str, str]) -> None:
    """All but one of the thirty are found: a small model reads the last as being about something else."""
    missed = {}
    for title, _, _, question in (pair for pairs in PAIRS.values() for pair in pairs):
        matches = [
            each["title"]
            for each in call_successfully("query_experiences", keywords=question, limit=RANKS)["experiences"]
        ]
        if title not in matches:
            missed[question] = matches
    assert len(missed) <= 1, missed
